// Package splitmix is the one generator of random numbers of models, worlds, tests and the core: splitmix64 (Steele, Lea, Flood: Fast
// Splittable Pseudorandom Number Generators, 2014). Its state is eight bytes that are cloned, encoded and compared with their owner;
// math/rand/v2's generators hide theirs behind pointers.
//
// What it draws is part of every recording, golden timeline and trace hash: it never changes.
package splitmix

// Golden is 2^64 divided by the golden ratio: multiples of it are spread evenly.
const Golden = 0x9e3779b97f4a7c15

// Next moves a generator on and draws a number. The state may be any number, 0 too.
func Next[S ~uint64](state *S) uint64 {
	*state += Golden
	return Mix(uint64(*state))
}

// Mix is the generator's finaliser, a bijection.
func Mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Unmix undoes Mix; the factors are the inverses of Mix's modulo 2^64.
func Unmix(z uint64) uint64 {
	z = (z ^ z>>31 ^ z>>62) * 0x319642b2d24d8ec3
	z = (z ^ z>>27 ^ z>>54) * 0x96de1b173f119089
	return z ^ z>>30 ^ z>>60
}
