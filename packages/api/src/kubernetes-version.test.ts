import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import {
  honoursNominations,
  minorOf,
  resizedRequests,
  servesImplicitNames,
  testedMinors,
} from './kubernetes-version.ts'

const root = new URL('../../../', import.meta.url)
const text = (path: string) => readFileSync(new URL(path, root), 'utf8')

test('VER-2 the minor is read from versions of every distribution', () => {
  const minors = {
    'v1.35.1-eks-1a2b3c': 35,
    'v1.37.0-rc.1': 37,
    'v1.36.0+k3s1': 36,
    'v1.34.9-gke.100': 34,
    '1.40.2': 40,
    'v1.33': 33,
  }
  assert.deepEqual(Object.fromEntries(Object.keys(minors).map((each) => [each, minorOf(each)])), minors)
  for (const each of ['', 'unknown', 'v2.0.0', 'v1.x', 'v10.3.1'])
    assert.equal(minorOf(each), undefined, each)
})

test('nominations by others count from 1.35 on', () => {
  assert.deepEqual([undefined, 34, 35, 37].map(honoursNominations), [false, false, true, true])
})

test('VER-40 sums of resized pods are compared from 1.37 on; of an unknown version maxima are added up', () => {
  assert.deepEqual(
    [33, 36, 37, 38, undefined].map((minor) => resizedRequests(minor)),
    ['sumOfMaxima', 'sumOfMaxima', 'maximumOfSums', 'maximumOfSums', 'sumOfMaxima'],
  )
})

test('VER-12 every DeviceClass serves an implicit name from 1.36 on, in 1.35 if the gate is on', () => {
  const served = (isGateOn: boolean) =>
    [undefined, 34, 35, 36, 37].map((minor) => servesImplicitNames(minor, isGateOn))
  assert.deepEqual(served(false), [true, false, false, true, true])
  assert.deepEqual(served(true), [true, false, true, true, true])
})

test('VER-61 charts and docs say the same range', () => {
  const { oldest, newest } = testedMinors
  const charts = globSync('charts/*/Chart.yaml', { cwd: root })
  assert.ok(charts.length > 0)
  for (const chart of charts)
    assert.match(text(chart), new RegExp(`^kubeVersion: '>=1\\.${oldest}\\.0-0'$`, 'm'))
  const row = new RegExp(`older than Kubernetes 1\\.${oldest} \\| it is newer than 1\\.${newest} `)
  assert.match(text('docs/ask/preflight.md'), row)
  assert.match(text('docs/versions.md'), new RegExp(`tested with 1\\.${oldest} to 1\\.${newest};`))
})
