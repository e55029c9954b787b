import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { XmlDocument, XsdValidator } from 'libxml2-wasm'
import { type JunitCase, junitXml } from './report.ts'

const schema = readFileSync(join(import.meta.dirname, 'testdata', 'junit.xsd'), 'utf8')

/** Throws with the line when the text is not valid. */
function validated(text: string): XmlDocument {
  const validator = XsdValidator.fromDoc(XmlDocument.fromString(schema))
  const document = XmlDocument.fromString(text)
  validator.validate(document)
  return document
}

const odd = 'a < b && c > "d" ]]> \u0000\u001b[31m \ud800 🦊\n\tnext'
const readable = 'a < b && c > "d" ]]> \ufffd\ufffd[31m \ufffd 🦊\n\tnext'

const cases: readonly JunitCase[] = [
  { className: 'a', name: 'passes', durationMs: 12.4 },
  { className: 'a', name: odd, durationMs: 1500, output: odd },
  { className: 'b', name: 'fails', durationMs: 0, failure: { message: odd, type: 'fail', text: odd } },
]

test('EXP-20 JUnit output is valid, whatever the texts hold', () => {
  const document = validated(junitXml('suite & more', cases))
  const read = (path: string) => document.get(path)?.content
  assert.equal(read('/testsuites/testsuite/@name'), 'suite & more')
  assert.equal(read('/testsuites/testsuite/@tests'), '3')
  assert.equal(read('/testsuites/@failures'), '1')
  assert.equal(read('//testcase[2]/@name'), readable)
  assert.equal(read('//testcase[2]/system-out'), readable)
  assert.equal(read('//testcase[2]/@time'), '1.500')
  assert.equal(read('//failure/@message'), readable)
  assert.equal(read('//failure'), readable)
})

test('EXP-20 a suite without cases is valid, and the schema refuses what is not', () => {
  validated(junitXml('empty', []))
  assert.throws(() => validated(junitXml('suite', cases).replace('classname="b"', '')), /classname/)
  assert.throws(() => validated(junitXml('suite', cases).replaceAll('failure', 'problem')), /problem/)
})
