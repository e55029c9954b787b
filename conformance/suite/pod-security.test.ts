/**
 * Holds PodSecurity admission of the embedded API server to kube-apiserver: status, message and warnings of random pods
 * and workloads in namespaces with random labels, and of updates of pods and labels. TENON_CASES=<number> tries more,
 * TENON_POD_SECURITY_SEED=<text> others, TENON_POD_SECURITY_CASE=c17 one alone.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { SeededRandom } from '@tenon/runtime'
import type { Ask } from '../src/ask.ts'
import { imitatedMinor } from '../src/defaulting/by-minor.ts'
import { createEmbedded } from '../src/defaulting/embedded.ts'
import { inParallel } from '../src/parallel.ts'
import { drawCreation, drawPod, drawUpdate, oddLabels, securityLabels } from '../src/pod-security/cases.ts'
import { compareSecurity, type SecurityCase } from '../src/pod-security/comparison.ts'
import { administrator } from './administrator.ts'
import { sharedControlPlane } from './cluster.ts'

const seed = process.env['TENON_POD_SECURITY_SEED'] ?? 'pod-security'
const wanted = Number(process.env['TENON_CASES'] ?? 300)
const only = process.env['TENON_POD_SECURITY_CASE']
const namespaceCount = 40
const stores = 6
const podsPerStore = 12
/** The most differences that are printed. */
const shownMost = 5

const random = (name: string) => new SeededRandom(`${seed} ${name}`)
const numbered = (count: number, prefix: string) => Array.from({ length: count }, (_, i) => `${prefix}${i}`)
/** A fresh name, as namespaces of an earlier run may still end. */
const run = `pss-${process.pid}-`

describe(`PGE-16 pod security, seed ${seed}`, () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let servers: readonly [real: Ask, embedded: Ask]
  const made: string[] = []

  before(async () => {
    controlPlane = await sharedControlPlane()
    servers = [await administrator(controlPlane.kubeconfigPath), createEmbedded()]
  })

  after(async () => {
    const [real] = servers
    await inParallel(made, (name) => real('DELETE', `/api/v1/namespaces/${name}`))
    await controlPlane.stop()
  })

  /** Other minors word some controls otherwise, or do not know those of the latest versions. */
  const isCompared = () => controlPlane.minor === imitatedMinor

  /** Creates a namespace on both servers, with the account that its pods use. */
  async function namespace(name: string, labels: Readonly<Record<string, string>>): Promise<string> {
    made.push(name)
    const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } }
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } }
    for (const ask of servers) {
      assert.equal((await ask('POST', '/api/v1/namespaces', object)).status, 201)
      // A controller may be faster.
      await ask('POST', `/api/v1/namespaces/${name}/serviceaccounts`, account)
    }
    return name
  }

  async function hold(cases: readonly SecurityCase[], say: (text: string) => void) {
    const played = only === undefined ? cases : cases.filter(({ name }) => name === only)
    const result = await compareSecurity(played, ...servers)
    const { accepted, refused, warned, found } = result
    say(`${played.length} requests, ${accepted} accepted, ${refused} forbidden, ${warned} warned of`)
    assert.equal(found.length, 0, `${found.length} differ:\n${found.slice(0, shownMost).join('\n')}`)
    return result
  }

  test(`refuses and warns of ${wanted} pods and workloads as kube-apiserver does`, async (context) => {
    if (!isCompared()) return context.skip(`the embedded API server imitates 1.${imitatedMinor}`)
    const namespaces = numbered(namespaceCount, `${run}n`)
    for (const name of namespaces) await namespace(name, securityLabels(random(name.slice(run.length))))
    const cases = numbered(wanted, 'c').map((name) => drawCreation(name, namespaces, random(name)))
    const { accepted, refused, warned } = await hold(cases, (text) => context.diagnostic(text))
    // A comparison of nothing would hold as well.
    if (only === undefined && wanted >= 100)
      assert.ok(Math.min(accepted, refused, warned) > wanted / 10, 'the cases are one-sided')
  })

  test('judges updates of pods and of the labels of namespaces as kube-apiserver does', async (context) => {
    if (!isCompared()) return context.skip(`the embedded API server imitates 1.${imitatedMinor}`)
    const cases: SecurityCase[] = []
    for (const store of numbered(stores, 's')) {
      const name = await namespace(`${run}${store}`, {})
      const pods = numbered(podsPerStore, 'p').map((pod) => drawPod(pod, random(`${store} ${pod}`)))
      const stored: typeof pods = []
      for (const pod of pods) {
        const answers = await Promise.all(
          servers.map((ask) => ask('POST', `/api/v1/namespaces/${name}/pods`, pod)),
        )
        if (answers.every(({ status }) => status === 201)) stored.push(pod)
      }
      const body = { metadata: { labels: securityLabels(random(`${store} labels`)) } }
      for (const ask of servers)
        await ask('PATCH', `/api/v1/namespaces/${name}`, body, 'application/merge-patch+json')
      cases.push(
        ...numbered(Math.ceil(wanted / stores / 4), `${store}u`).map((one) =>
          drawUpdate(one, name, stored, random(one)),
        ),
      )
    }
    await hold(cases, (text) => context.diagnostic(text))
  })

  test('checks the labels of new namespaces as kube-apiserver does', async (context) => {
    if (!isCompared()) return context.skip(`the embedded API server imitates 1.${imitatedMinor}`)
    const cases = numbered(60, 'l').map((name) => {
      const metadata = { name, labels: oddLabels(random(name)) }
      const body = { apiVersion: 'v1', kind: 'Namespace', metadata }
      return { name, method: 'POST', path: '/api/v1/namespaces', body } as const
    })
    await hold(cases, (text) => context.diagnostic(text))
  })
})
