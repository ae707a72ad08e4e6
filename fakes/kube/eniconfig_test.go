package kube

import (
	"slices"
	"testing"
	"time"
)

func TestENIConfigs(t *testing.T) {
	c := New(1)
	if c.DeleteENIConfig(0, "b") || !c.PutENIConfig(1, ENIConfig{Name: "b", Subnet: "s-1"}) ||
		!c.PutENIConfig(2, ENIConfig{Name: "a", Subnet: "s-2"}) {
		t.Fatal("one that is not there is deleted, or one is not made")
	}
	if c.PutENIConfig(3, ENIConfig{Name: "b", Subnet: "s-1"}) ||
		!c.PutENIConfig(4, ENIConfig{Name: "b", Subnet: "s-1", Groups: []string{"sg-1"}}) {
		t.Error("what is so already changes, or groups do not count")
	}
	fork := c.Clone()
	if !fork.DeleteENIConfig(5, "b") || len(fork.ENIConfigs()) != 1 || len(c.ENIConfigs()) != 2 || c.ENIConfigs()[0].Name != "a" {
		t.Errorf("%v, and the fork's %v", c.ENIConfigs(), fork.ENIConfigs())
	}
	if _, changed, ok := fork.ENIConfig("b"); ok || changed != 5 {
		t.Errorf("a deleted one: %v, at %v", ok, changed)
	}
	if e, changed, ok := c.ENIConfig("b"); !ok || changed != 4 || e.Subnet != "s-1" {
		t.Errorf("%+v, %v, %v", e, changed, ok)
	}
}

func TestMarks(t *testing.T) {
	c, one, two := New(1), "1", "2"
	if c.Label(1, 1, "k", nil) || !c.Label(2, 1, "k", &one) || c.Label(3, 1, "k", &one) || !c.Annotate(4, 1, "k", &two) {
		t.Fatal("a mark is set that is there, or is not set")
	}
	fork := c.Clone()
	fork.Label(5, 1, "k", nil)
	labels, annotations, changed := c.Marks(1)
	if labels["k"] != "1" || annotations["k"] != "2" || changed != 4 {
		t.Errorf("%v, %v, %v", labels, annotations, changed)
	}
	if labels, _, changed := fork.Marks(1); len(labels) > 0 || changed != 5 {
		t.Errorf("the fork's: %v, %v", labels, changed)
	}
}

func TestAway(t *testing.T) {
	c := New(1)
	if c.Away(0) || len(c.Parted()) > 0 {
		t.Errorf("a new one was away: %v", c.Parted())
	}
	c.Part(time.Minute, 2*time.Minute)
	c.Part(90*time.Second, 3*time.Minute)
	fork := c.Clone()
	c.Part(5*time.Minute, 6*time.Minute)
	first, second := Parting{time.Minute, 3 * time.Minute}, Parting{5 * time.Minute, 6 * time.Minute}
	if got := c.Parted(); !slices.Equal(got, []Parting{first, second}) || !c.Away(second.Until-1) || c.Away(second.Until) {
		t.Errorf("it was away %v", got)
	}
	if got := fork.Parted(); !slices.Equal(got, []Parting{first}) || !fork.Away(first.Until-1) || fork.Away(first.Until) {
		t.Errorf("its fork was away %v", got)
	}
}
