/**
 * Holds the embedded API server to kube-apiserver: what both make of random objects of built-in kinds, and which
 * they refuse. TENON_CASES=<number> tries more, TENON_DEFAULTING_SEED=<text> others, TENON_DEFAULTING_CASE=<name>
 * one alone, TENON_DEFAULTING_KINDS=<kinds> those of some kinds.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { provisioningRequestCrd } from '@tenon/api'
import { SeededRandom, SystemClock } from '@tenon/runtime'
import {
  nothingThere,
  saidOf,
} from '../../packages/devcluster/src/apiserver/not-served-paths.test-support.ts'
import type { SendRequest } from '../../packages/world/src/crds/tests/crd-case.test-support.ts'
import { differences, essenceOf } from '../src/defaulting/compare.ts'
import { createEmbedded } from '../src/defaulting/embedded.ts'
import { type DefaultingCase, drawDefaultingCase, kindAt, kindCount } from '../src/defaulting/kinds.ts'
import { inParallel } from '../src/parallel.ts'
import { administrator } from './administrator.ts'
import { sharedControlPlane } from './cluster.ts'

const seed = process.env['TENON_DEFAULTING_SEED'] ?? 'defaulting'
const wanted = Number(process.env['TENON_CASES'] ?? 500)
/** So many differences are shown in full. */
const shownMost = 5

const kinds = process.env['TENON_DEFAULTING_KINDS']?.split(',')
const indices =
  process.env['TENON_DEFAULTING_CASE']?.split(',').map((name) => Number(name.slice(1))) ??
  Array.from({ length: wanted }, (_, index) => index).filter(
    (index) => kinds?.includes(kindAt(index)) ?? true,
  )

const posted = 'dryRun=All&fieldValidation=Strict'

test('the embedded API server says of what is not served what kube-apiserver does', async () => {
  const controlPlane = await sharedControlPlane()
  try {
    const real = await administrator(controlPlane.kubeconfigPath)
    await real('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', provisioningRequestCrd)
    const served = nothingThere.filter(([, , said]) => said === 'ok').map(([, path]) => path)
    const areServed = async () =>
      (await Promise.all(served.map((path) => real('GET', path)))).every(({ status }) => status === 200)
    while (!(await areServed())) await new SystemClock().sleep(200)
    const object = { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'x' } }
    for (const [method, path, said] of nothingThere) {
      const body = method === 'POST' || method === 'PUT' ? object : undefined
      assert.equal(saidOf(await real(method, path, body)), said, `${method} ${path}`)
    }
  } finally {
    await controlPlane.stop()
  }
})

describe(`defaults and refusals, seed ${seed}`, () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let real: SendRequest

  before(async () => {
    controlPlane = await sharedControlPlane()
    real = await administrator(controlPlane.kubeconfigPath)
  })

  after(() => controlPlane?.stop())

  test(`the embedded API server makes of objects what kube-apiserver does, ${indices.length} of ${kindCount} kinds`, async (context) => {
    const embedded = createEmbedded()
    const cases = indices.map((index) => drawDefaultingCase(index, new SeededRandom(`${seed} c${index}`)))
    const found = new Map<DefaultingCase, readonly string[]>()
    let accepted = 0
    await inParallel(cases, async (one) => {
      const path = `${one.path}?${posted}`
      const truth = await real('POST', path, one.object)
      const ours = await embedded('POST', path, one.object)
      if (truth.status < 400) accepted++
      const different = differences(essenceOf(one.object, truth), essenceOf(one.object, ours))
      if (different.length === 0) return
      const words = [truth, ours].map(({ body }) => String(body['message'] ?? ''))
      const said = [`  real says ${words[0]}`, `  embedded says ${words[1]}`]
      found.set(one, [...different.map((line) => `  ${line}`), ...said])
    })
    context.diagnostic(`${cases.length} objects, ${accepted} accepted, ${found.size} different`)
    // A comparison of nothing would hold as well.
    assert.ok(indices.length < kindCount || (accepted > cases.length / 4 && accepted < cases.length))
    const shown = [...found].map(([one, lines], index) => {
      const title = `${one.name} ${String(one.object['kind'])}`
      const whole = index < shownMost ? [`  ${JSON.stringify(one.object)}`] : []
      return [title, ...lines, ...whole].join('\n')
    })
    assert.equal(found.size, 0, `seed ${seed}:\n${shown.join('\n')}`)
  })
})
