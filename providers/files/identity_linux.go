package files

import (
	"io/fs"
	"syscall"
)

func identityOf(info fs.FileInfo) (identity, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, false
	}
	return identity{
		dev: uint64(st.Dev), ino: st.Ino, size: st.Size, //nolint:unconvert // its type depends on the architecture
		mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(),
	}, true
}
