package requirement

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
)

// number is what the schema calls a number; where it says nothing it is an int when it
// is written as one, else a double. A number that the type cannot hold digit for digit
// is refused: what is authorized and what is called would differ.
func (s *shape) number(text string) (any, error) {
	if s.typ.Kind() == cel.DoubleKind {
		return double(text)
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}
	if s.typ.Kind() == cel.IntKind || !strings.ContainsAny(text, ".eE") {
		return integer(text)
	}
	return double(text)
}

// integer reads 1.0 and 1e3, which are integers too as JSON Schema sees it.
func integer(text string) (int64, error) {
	d, err := decimalOf(text)
	const digits = 19 // of the largest integer of 64 bits
	if err != nil || d.exponent < 0 || len(d.digits)+d.exponent > digits {
		return 0, fmt.Errorf("%s is no integer of 64 bits", text)
	}
	i, err := strconv.ParseInt(d.sign+d.digits+strings.Repeat("0", d.exponent), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is no integer of 64 bits", text)
	}
	return i, nil
}

func double(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is no number of 64 bits", text)
	}
	written, err := decimalOf(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", text, err)
	}
	if kept, err := decimalOf(strconv.FormatFloat(f, 'e', -1, 64)); err != nil || kept != written {
		return 0, fmt.Errorf("%s has more digits than a number of 64 bits keeps", text)
	}
	return f, nil
}

// decimal is a number's one form: digits without zeros at their ends, times a power of ten.
type decimal struct {
	sign     string
	digits   string
	exponent int
}

// decimalOf reads a number as JSON writes it.
func decimalOf(text string) (decimal, error) {
	d := decimal{}
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		d.sign, text = "-", rest
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		e, err := strconv.Atoi(text[i+1:])
		if err != nil || e > math.MaxInt32 || e < math.MinInt32 {
			return decimal{}, errors.New("its exponent is too large")
		}
		d.exponent, text = e, text[:i]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	d.exponent -= len(fraction)
	digits := strings.TrimLeft(whole+fraction, "0")
	d.digits = strings.TrimRight(digits, "0")
	d.exponent += len(digits) - len(d.digits)
	if d.digits == "" { // 0, 0.00, -0 and 0e9 are one number
		return decimal{digits: "0"}, nil
	}
	return d, nil
}
