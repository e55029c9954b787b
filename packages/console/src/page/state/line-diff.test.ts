import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unifiedDiff } from './line-diff.ts'

test('a changed line is a hunk with the lines around it', () => {
  const before = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].join('\n')
  assert.equal(
    unifiedDiff(before, before.replace('e', 'x'), 'web.yaml'),
    '--- a/web.yaml\n+++ b/web.yaml\n@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+x\n f\n g\n h\n',
  )
})

test('equal texts have no diff, and two changes far apart are two hunks', () => {
  assert.equal(unifiedDiff('a\nb', 'a\nb', 'web.yaml'), '')
  const lines = Array.from({ length: 30 }, (_, at) => `line ${at}`)
  const changed = lines.with(2, 'x').toSpliced(25, 1)
  const diff = unifiedDiff(lines.join('\n'), changed.join('\n'), 'web.yaml')
  assert.equal(diff.split('\n').filter((line) => line.startsWith('@@')).length, 2)
  assert.match(diff, /@@ -23,7 \+23,6 @@/)
})
