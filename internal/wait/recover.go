package wait

import (
	"fmt"
	"runtime/debug"
)

// Recover is deferred. It turns a panic of its caller into an error, so that one row that a decoder cannot
// bear does not take the other resources of this process down. The error names the caller by the word what.
func Recover(what string, err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("a defect in storestream: %s panicked: %v\n%s", what, v, debug.Stack())
	}
}
