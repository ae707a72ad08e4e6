// Package must ends a test that cannot go on: what it prepares has failed, and nothing that it would show is said by going on.
//
//	must.Do(t, os.WriteFile(path, data, 0o644))
//	data := must.Get(os.ReadFile(path))(t)
package must

import "testing"

// Do ends the test at the caller's line if err is one.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get is what a call returned beside a nil error, once it is told whose test ends on another.
func Get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return v
	}
}
