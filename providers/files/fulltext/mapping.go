package fulltext

import (
	"fmt"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/keyword"
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/token/porter"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
	"github.com/blevesearch/bleve/v2/mapping"
	index "github.com/blevesearch/bleve_index_api"
)

// The fields of a document.
const (
	fieldText  = "text"
	fieldName  = "name"
	fieldBelow = "below" // the paths the file lies at or below
	fieldStamp = "stamp" // stored only
)

const words = "words"

func newMapping() (mapping.IndexMapping, error) {
	m := bleve.NewIndexMapping()
	if err := m.AddCustomAnalyzer(words, map[string]any{
		"type": custom.Name, "tokenizer": unicode.Name, "token_filters": []string{lowercase.Name, porter.Name},
	}); err != nil {
		return nil, fmt.Errorf("define analyzer: %w", err)
	}
	m.ScoringModel = index.BM25Scoring
	m.DefaultAnalyzer = words
	doc := bleve.NewDocumentStaticMapping()
	doc.AddFieldMappingsAt(fieldText, text(words, true))
	doc.AddFieldMappingsAt(fieldName, text(words, true))
	doc.AddFieldMappingsAt(fieldBelow, text(keyword.Name, true))
	stamp := text(keyword.Name, false)
	stamp.Store = true
	doc.AddFieldMappingsAt(fieldStamp, stamp)
	m.DefaultMapping = doc
	return m, nil
}

func text(analyzer string, indexed bool) *mapping.FieldMapping {
	f := bleve.NewTextFieldMapping()
	f.Analyzer, f.Index = analyzer, indexed
	f.Store, f.IncludeInAll, f.IncludeTermVectors, f.DocValues = false, false, false, false
	return f
}
