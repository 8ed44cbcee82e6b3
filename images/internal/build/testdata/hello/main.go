// Command hello is the smallest program an image can hold.
package main

import "os"

var version = "unset"

func main() {
	if _, err := os.Stdout.WriteString("hello " + version + "\n"); err != nil {
		os.Exit(1)
	}
}
