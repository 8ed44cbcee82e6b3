package strictjson

// MaxValues is how many values one document may hold, each array and object being one
// and each of their entries another. A parsed value takes many times the memory of
// its text: without a limit a few megabytes of "[[],[],[]]" make a tree of hundreds.
// They are counted before anything is allocated for them.
const MaxValues = 1 << 17

// MaxPayloadValues is how many values a part may hold that travels inside of other
// documents, such as a tool's output: what is around it still fits [MaxValues].
const MaxPayloadValues = MaxValues - 1<<10

// tooManyValues reports whether text holds more than most values. Of text that is not
// JSON it counts at least what a parser would make before it notices.
func tooManyValues(data []byte, most int) bool {
	if len(data) < 2*most { // n values are written with 2n-1 bytes or more
		return false
	}
	values, quoted, opened := 1, false, false
	for i := 0; i < len(data); i++ {
		c := data[i]
		if quoted {
			switch c {
			case '\\':
				i++
			case '"':
				quoted = false
			}
			continue
		}
		switch c {
		case ' ', '\t', '\n', '\r':
			continue
		case ']', '}':
			opened = false
			continue
		}
		if opened { // the first entry of what was opened before
			values++
		}
		if opened = c == '[' || c == '{'; c == ',' {
			values++
		}
		if quoted = c == '"'; values > most {
			return true
		}
	}
	return false
}

// Fits reports whether the document holds at most [MaxPayloadValues].
func Fits(data []byte) bool { return !tooManyValues(data, MaxPayloadValues) }
