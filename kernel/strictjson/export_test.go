package strictjson

// TooMany is the count, of texts of any length.
var TooMany = tooManyValues //nolint:gochecknoglobals // for tests only
