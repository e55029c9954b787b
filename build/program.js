#!/usr/bin/env node
// What `tenon` runs where it is installed: syntax that an old Node reads, so that it can say what is wrong.
const version = process.versions.node
if (Number(version.split('.')[0]) < 24) {
  console.error(`error: this is Node ${version}; install Node 24 or newer`)
  process.exitCode = 1
} else {
  await import('./dist/tenon.mjs')
}
