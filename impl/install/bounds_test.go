package install

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
)

// TestSixtyFourPlugins are an image's; one more is another folder.
func TestSixtyFourPlugins(t *testing.T) {
	image := map[string]string{}
	for len(image) < maxPlugins {
		image[fmt.Sprint("plugin-", len(image))] = "x"
	}
	if changed, err := Plugins(folder(t, image), t.TempDir()); err != nil || len(changed) != maxPlugins {
		t.Errorf("%d are installed, %v", len(changed), err)
	}
	image["one-more"] = "x"
	to := t.TempDir()
	if changed, err := Plugins(folder(t, image), to); err == nil || len(changed) > 0 || len(contents(t, to)) > 0 {
		t.Errorf("%v are installed, %v", changed, err)
	}
}

// TestCopyOfWhatCannotBeRead: the error says so, whether it is the plugin or the folder, and nothing is left.
func TestCopyOfWhatCannotBeRead(t *testing.T) {
	from, to := folder(t, map[string]string{"aws-cni": "x"}), t.TempDir()
	for plugin, dir := range map[string]string{"gone": to, "aws-cni": filepath.Join(to, "gone")} {
		if fresh, err := stage(filepath.Join(from, plugin), dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a copy of %s in %s: %q, %v", plugin, dir, fresh, err)
		}
	}
	// A folder can be opened and not be read: what happens after that makes no copy of it.
	if fresh, err := stage(from, to); !errors.Is(err, syscall.EISDIR) || fresh != "" {
		t.Errorf("a copy of a folder: %q, %v", fresh, err)
	}
	if left := contents(t, to); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestEqual, also where a block ends, and not by what could not be read.
func TestEqual(t *testing.T) {
	for _, n := range []int{0, 1, block - 1, block, block + 1, 2 * block} {
		text := strings.Repeat("x", n)
		if !equal(strings.NewReader(text), strings.NewReader(text)) {
			t.Errorf("%d bytes differ from themselves", n)
		}
		more := text + "x"
		if equal(strings.NewReader(text), strings.NewReader(more)) || equal(strings.NewReader(more), strings.NewReader(text)) {
			t.Errorf("%d bytes are the same as one more", n)
		}
		broken := func() io.Reader {
			return io.MultiReader(strings.NewReader(text), iotest.ErrReader(errors.New("broken")))
		}
		whole := strings.NewReader(text)
		if equal(broken(), broken()) || equal(broken(), whole) || equal(strings.NewReader(text), broken()) {
			t.Errorf("what cannot be read behind %d bytes is the same", n)
		}
	}
}
