// Package image makes the container image.
package image
