//go:build race

package plugin_test

// raceOn says that bounds of time do not hold.
const raceOn = true
