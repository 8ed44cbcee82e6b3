package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// genesis is the prev of the first record.
const genesis = "0000000000000000000000000000000000000000000000000000000000000000"

// hashLen is the length of a hash in hexadecimal digits.
const hashLen = len(genesis)

// position is the place of a record in the chain.
type position struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// start is the position before the first record.
func start() position { return position{Seq: -1, Hash: genesis} }

// The parts of a line around the event, the hash, the previous hash and the number.
const (
	partEvent = `{"event":`
	partHash  = `,"hash":"`
	partPrev  = `,"prev":"`
	partSeq   = `","seq":`
	partEnd   = "}\n"
)

// appendRecord appends the line for an event in canonical JSON and moves the
// position onto it. scratch is reused for what is hashed.
func appendRecord(dst, scratch, event []byte, at *position) (line, reuse []byte) {
	seq := at.Seq + 1
	scratch = append(append(scratch[:0], partEvent...), event...)
	scratch = append(append(scratch, partPrev...), at.Hash...)
	scratch = append(strconv.AppendInt(append(scratch, partSeq...), seq, 10), '}')
	hash := canonical.HashBytes(scratch)

	dst = append(append(dst, partEvent...), event...)
	dst = append(append(dst, partHash...), hash...)
	dst = append(append(append(dst, '"'), partPrev...), at.Hash...)
	dst = append(strconv.AppendInt(append(dst, partSeq...), seq, 10), partEnd...)
	at.Seq, at.Hash = seq, hash
	return dst, scratch
}

// Faults of a record.
var (
	errTorn     = errors.New("record is incomplete")
	errDamaged  = errors.New("record is not what was written")
	errHash     = errors.New("record does not have the hash it names")
	errChain    = errors.New("record does not follow the one before it")
	errSequence = errors.New("record is out of sequence")
)

// checkRecord verifies one line, without its newline, against the record before it
// and returns its position.
func checkRecord(line []byte, before position) (position, error) {
	node, err := strictjson.Parse(line)
	if err != nil {
		return position{}, errDamaged
	}
	var r struct {
		Event json.RawMessage `json:"event"`
		Hash  string          `json:"hash"`
		Prev  string          `json:"prev"`
		Seq   int64           `json:"seq"`
	}
	if err := strictjson.Decode(node, &r, strictjson.Options{}); err != nil {
		return position{}, errDamaged
	}
	written, _ := appendRecord(nil, nil, r.Event, &position{Seq: r.Seq - 1, Hash: r.Prev})
	switch {
	case len(r.Hash) != hashLen || len(r.Prev) != hashLen:
		return position{}, errDamaged
	case !bytes.Contains(written, []byte(partHash+r.Hash)):
		return position{}, errHash
	case !bytes.Equal(written, append(bytes.Clone(line), '\n')):
		return position{}, errDamaged
	case r.Seq != before.Seq+1:
		return position{}, fmt.Errorf("%w: has %d after %d", errSequence, r.Seq, before.Seq)
	case r.Prev != before.Hash:
		return position{}, errChain
	}
	return position{Seq: r.Seq, Hash: r.Hash}, nil
}
