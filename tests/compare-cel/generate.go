package main

func generate(seed uint64, count int) []string { return nil }
