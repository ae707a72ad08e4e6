package scn

import (
	"os"
	"reflect"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// FuzzParse: no input panics; what parses prints its own bytes and is read back as it was; its
// canonical form means the same and is its own canonical form.
func FuzzParse(f *testing.F) {
	data := must.Get(os.ReadFile("testdata/socket-mismatch.scn"))(f)
	f.Add(data)
	for _, s := range []string{
		"cluster a=1\r\n[!sim,netns] at 1d every 5s until 2d pod x y \"a=b\" c=\"d  # e\"\t# f\n",
		"cluster a=1\nvary x=1,2\nat 0 within 5s expect kube m >= \"$x \\\"\\\\\"\n-- a --\n-- story --",
		"cluster a==\ncompare counts \"\"\nreaches a:b\nfinally converges within 1h0m5s\nstart pods w 1 on node-*\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("f", data)
		if err != nil {
			if err.Error() == "" || file != nil {
				t.Fatalf("a bad failure: %q, %v", err, file)
			}
			return
		}
		if got := file.String(); got != string(data) {
			t.Fatalf("prints other bytes: %q", got)
		}
		if again, err := Parse("f", []byte(file.String())); err != nil || !reflect.DeepEqual(file, again) {
			t.Fatalf("is read back otherwise: %v", err)
		}
		checkCanonical(t, file)
		for _, vars := range file.Variants()[:1] {
			if x, err := file.Expand(vars); err == nil {
				checkCanonical(t, x)
			}
		}
		if all := file.Statements(); len(all) > 0 {
			n := all[0]
			if got := len(file.Without(n).Statements()); got != len(file.Statements())-1 {
				t.Fatalf("without line %d: %d statements", n, got)
			}
		}
	})
}

// checkCanonical prints f canonically and reads it back.
func checkCanonical(t *testing.T, f *File) {
	plain := f.Clone()
	for i := range plain.Lines {
		plain.Lines[i].Raw = ""
		if len(plain.Lines[i].String()) > maxLine {
			return // canonical blanks and quotes may push a line over the limit
		}
	}
	text := plain.String()
	if len(text) > MaxFile {
		return
	}
	again, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatalf("the canonical form is bad: %v\n%s", err, text)
	}
	for i := range again.Lines {
		again.Lines[i].Raw = ""
	}
	if again.String() != text {
		t.Fatalf("the canonical form\n%q\nprints as\n%q", text, again)
	}
}
