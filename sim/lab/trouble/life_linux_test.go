package trouble_test

import "testing"

// TestNoTrouble: the machine of these tests works.
func TestNoTrouble(t *testing.T) {
	m := newMachine(t)
	m.init()
	m.start()
	m.serves()
	a, b := m.add("a"), m.add("b")
	m.answer(a, b)
	m.del(a)
	m.answer(b)
	m.term()
	m.answer(b)
}
