// Package fulltext is a [files.Index] on disk: words are found in any order, in
// their English stems, and ranked by BM25; a word in a file's name counts double.
//
// It is apart from the files provider so that a program that serves files without
// search does not carry the index library. An index that cannot be opened, or that
// an older version made, is thrown away: its content is only ever derived.
package fulltext
