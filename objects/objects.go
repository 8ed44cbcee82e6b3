// Package objects is how objects of the API are read where it does not matter whether
// a cluster holds them or a folder of files does. It has no client of Kubernetes, so
// that a program which reads only files need not build one; package cluster puts a
// client behind it.
package objects

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Object is an object of the API.
type Object interface {
	metav1.Object
	runtime.Object
}

// List is a list of them.
type List interface {
	metav1.ListInterface
	runtime.Object
}

// Reader reads objects. It is safe for concurrent use.
type Reader interface {
	// Get reads one object. The error of what is not there is NotFound of
	// k8s.io/apimachinery/pkg/api/errors.
	Get(ctx context.Context, key types.NamespacedName, into Object) error
	// List reads all objects of one namespace. What it returns may be shared and must
	// not be changed.
	List(ctx context.Context, into List, namespace string) error
}
