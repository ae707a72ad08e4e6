package systems

import "testing"

func TestEmbedded(t *testing.T) {
	for _, name := range Embedded() {
		d, err := Describe(name, Options{Folder: t.TempDir(), Systems: t.TempDir()})
		if err != nil {
			t.Error(err)
		} else if d.Name != name || d.About == "" {
			t.Errorf("%s: name %q, about %q", name, d.Name, d.About)
		}
	}
}
