module github.com/sharedos-dev/operator/test/harness

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	github.com/sharedos-dev/operator v0.0.0
	github.com/sharedos-dev/operator/test/peers v0.0.0
)

require (
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // indirect
	golang.org/x/text v0.42.0 // indirect
)

replace (
	github.com/sharedos-dev/operator => ../..
	github.com/sharedos-dev/operator/test/peers => ../peers
)
