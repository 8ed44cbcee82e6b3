// Package plugin is the commands of `kubectl sharedos`, one a file.
//
// They compute nothing of their own: what is allowed comes from running the kernel
// over the objects that the caller may list, and every change is an object written
// with the caller's own rights. Text from others is never printed as it is.
//
// Exit codes: 0 is yes, done, or allowed; 1 is no: denied, failed, damaged; 2 means
// that there is no answer, because the call is at fault or something could not be
// reached; 3 is a Turn that asks for a person's decision.
package plugin
