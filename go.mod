module github.com/enilab/enilab

go 1.26
