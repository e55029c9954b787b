import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unifiedHunks } from './unified-diff.ts'

test('hunks are those of a unified diff', () => {
  const lines = (...words: readonly string[]) => words.join('\n')
  assert.equal(unifiedHunks('a\nb', 'a\nb'), '')
  assert.equal(unifiedHunks(lines('a', 'b', 'c'), lines('a', 'x', 'c')), '@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n')
  assert.equal(unifiedHunks(lines('a', 'b'), lines('a', 'b', 'c')), '@@ -1,2 +1,3 @@\n a\n b\n+c\n')
  assert.equal(unifiedHunks(lines('a', 'b', 'c'), lines('b', 'c')), '@@ -1,3 +1,2 @@\n-a\n b\n c\n')
  const many = Array.from({ length: 30 }, (_, i) => String(i))
  const changed = many.map((line) => (line === '5' || line === '25' ? `${line}!` : line))
  const hunks = unifiedHunks(many.join('\n'), changed.join('\n'))
  assert.deepEqual(hunks.match(/^@@.*@@$/gm), ['@@ -3,7 +3,7 @@', '@@ -23,7 +23,7 @@'])
  assert.equal(
    unifiedHunks(lines('a', 'b', 'c', 'a', 'b', 'b', 'a'), lines('c', 'b', 'a', 'b', 'a', 'c')).match(
      /^[-+] ?\w/gm,
    )?.length,
    5,
  )
})

test('texts of thousands of lines are compared at once', () => {
  const lines = Array.from({ length: 20_000 }, (_, at) => `line ${at}`)
  const hunks = unifiedHunks(lines.join('\n'), lines.with(10_000, 'x').toSpliced(15_000, 1).join('\n'))
  assert.deepEqual(hunks.match(/^@@.*@@$/gm), ['@@ -9998,7 +9998,7 @@', '@@ -14998,7 +14998,6 @@'])
})
