module github.com/sharedos-dev/operator

go 1.26
