package fulltext

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/search/query"
	index "github.com/blevesearch/bleve_index_api"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/providers/files"
)

// format names the mapping; an index of another one is made anew.
const format = "1"

var formatKey = []byte("sharedos-format")

// Index is a [files.Index].
type Index struct{ index bleve.Index }

// Open opens the index in dir, or makes it. Nothing else may be kept in dir.
func Open(dir string) (files.Index, error) {
	// Batches need not wait for the disk: what a crash loses is indexed again.
	config := map[string]any{"unsafe_batch": true}
	if old, err := bleve.OpenUsing(dir, config); err == nil {
		if made, err := old.GetInternal(formatKey); err == nil && string(made) == format {
			return &Index{old}, nil
		}
		_ = old.Close()
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("clear index: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return nil, fmt.Errorf("make index: %w", err)
	}
	m, err := newMapping()
	if err != nil {
		return nil, err
	}
	made, err := bleve.NewUsing(dir, m, scorch.Name, scorch.Name, config)
	if err != nil {
		return nil, fmt.Errorf("make index: %w", err)
	}
	if err := made.SetInternal(formatKey, []byte(format)); err != nil {
		return nil, fmt.Errorf("make index: %w", err)
	}
	return &Index{made}, nil
}

// Close implements [files.Index].
func (x *Index) Close() error { return x.index.Close() }

// id is a path as a document's id; no segment holds the separator.
func id(path contract.Path) string { return strings.Join(path, "/") }

func pathOf(id string) contract.Path { return strings.Split(id, "/") }

// Apply implements [files.Index].
func (x *Index) Apply(put []files.Document, remove []contract.Path) error {
	batch := x.index.NewBatch()
	for i := range put {
		d := &put[i]
		below := make([]string, 0, len(d.Path))
		for n := 1; n <= len(d.Path); n++ {
			below = append(below, id(d.Path[:n]))
		}
		if err := batch.Index(id(d.Path), map[string]any{
			fieldText: d.Text, fieldName: strings.Join(d.Path, " "), fieldBelow: below, fieldStamp: d.Stamp,
		}); err != nil {
			return fmt.Errorf("index file: %w", err)
		}
	}
	for _, path := range remove {
		batch.Delete(id(path))
	}
	if err := x.index.Batch(batch); err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	return nil
}

// Search implements [files.Index].
func (x *Index) Search(ctx context.Context, below contract.Path, text string, limit int) ([]contract.Path, int, error) {
	inText := bleve.NewMatchQuery(text)
	inText.SetField(fieldText)
	inName := bleve.NewMatchQuery(text)
	inName.SetField(fieldName)
	inName.SetBoost(2)
	var q query.Query = bleve.NewDisjunctionQuery(inText, inName)
	if len(below) > 0 {
		within := bleve.NewTermQuery(id(below))
		within.SetField(fieldBelow)
		filtered := bleve.NewBooleanQuery()
		filtered.AddMust(q)
		filtered.AddFilter(within)
		q = filtered
	}
	request := bleve.NewSearchRequestOptions(q, limit, 0, false)
	result, err := x.index.SearchInContext(ctx, request)
	if err != nil {
		return nil, 0, fmt.Errorf("search index: %w", err)
	}
	found := make([]contract.Path, 0, len(result.Hits))
	for _, hit := range result.Hits {
		found = append(found, pathOf(hit.ID))
	}
	return found, int(min(result.Total, 1<<31-1)), nil
}

// Stamps implements [files.Index].
func (x *Index) Stamps(ctx context.Context, visit func(path contract.Path, stamp string)) (err error) {
	low, err := x.index.Advanced()
	if err != nil {
		return fmt.Errorf("read index: %w", err)
	}
	reader, err := low.Reader()
	if err != nil {
		return fmt.Errorf("read index: %w", err)
	}
	defer func() {
		if closing := reader.Close(); err == nil {
			err = closing
		}
	}()
	all, err := reader.DocIDReaderAll()
	if err != nil {
		return fmt.Errorf("read index: %w", err)
	}
	defer func() { _ = all.Close() }()
	for {
		internal, err := all.Next()
		if err != nil {
			return fmt.Errorf("read index: %w", err)
		}
		if internal == nil {
			return ctx.Err()
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		external, err := reader.ExternalID(internal)
		if err != nil {
			return fmt.Errorf("read index: %w", err)
		}
		doc, err := reader.Document(external)
		if err != nil {
			return fmt.Errorf("read index: %w", err)
		}
		stamp := ""
		if doc != nil {
			doc.VisitFields(func(f index.Field) {
				if f.Name() == fieldStamp {
					stamp = string(f.Value())
				}
			})
		}
		visit(pathOf(external), stamp)
	}
}
