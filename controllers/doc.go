// Package controllers holds one reconciler per kind. They translate: they gather
// what the kernel asks about, hand it over, and store what came of it. They decide
// nothing about authority.
//
// Every reconciler is level-triggered and idempotent: it gathers, decides with
// pure functions, applies, and writes its one status at the end, if it changed.
package controllers

// FieldOwner is the field manager of everything the controllers apply.
const FieldOwner = "sharedos-manager"
