package httpapi_test

import (
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
)

var seedNow = contract.At(time.Date(2026, 8, 24, 9, 0, 0, 100e6, time.UTC))
