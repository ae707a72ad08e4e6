package e2e

import (
	"errors"
	"fmt"
	"sync"
)

// parallel does something with all of a list at once, and says what went wrong.
func parallel[T any](list []T, do func(T) error) error {
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i, v := range list {
		all.Go(func() { errs[i] = do(v) })
	}
	all.Wait()
	return join(errs...)
}

// jobs are done in parallel.
type jobs []func() error

func (j *jobs) add(f func() error) { *j = append(*j, f) }

func (j jobs) run() error { return parallel(j, func(f func() error) error { return f() }) }

// mostErrors bounds a message: when all pods cannot reach all others, the first ones say it.
const mostErrors = 12

// join is errors.Join for long lists.
func join(errs ...error) error {
	var flat []error
	for _, err := range errs {
		if list, ok := err.(interface{ Unwrap() []error }); ok {
			flat = append(flat, list.Unwrap()...)
		} else if err != nil {
			flat = append(flat, err)
		}
	}
	if more := len(flat) - mostErrors; more > 0 {
		flat = append(flat[:mostErrors], fmt.Errorf("and %d more", more))
	}
	return errors.Join(flat...)
}
