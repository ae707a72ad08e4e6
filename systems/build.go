package systems

import "errors"

func (f *finder) archive(string, string) (located, error) {
	return located{}, errors.New("images are not read yet")
}
func (f *finder) remote(string, string) (located, error) {
	return located{}, errors.New("images are not read yet")
}
func (f *finder) fromGit(string) (located, error) {
	return located{}, errors.New("commits are not built yet")
}
func (f *finder) fromModule(string) (located, error) {
	return located{}, errors.New("modules are not built yet")
}
