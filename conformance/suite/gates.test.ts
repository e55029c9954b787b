/** What control planes of 1.37 only do with feature gates or API versions that are off by default (docs/design/0012). */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, type TestContext, test } from 'node:test'
import { minorOf } from '@tenon/api'
import type { Features } from '../src/boot.ts'
import { type ControlPlane, startControlPlane } from '../src/control-plane.ts'
import { Cluster, elapsed, type TestObject, until } from './cluster.ts'
import { Controller, crdsYaml } from './tenon.ts'

const poolLabel = 'karpenter.sh/nodepool'
const pool = 'gates'
const deadlineMs = 30_000

function aPod(name: string, spec: object = {}): TestObject {
  const resources = { requests: { cpu: '500m' } }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: {
      terminationGracePeriodSeconds: 0,
      nodeSelector: { [poolLabel]: pool },
      containers: [{ name: 'main', image: 'registry.k8s.io/pause:3.10', resources }],
      ...spec,
    },
  }
}

describe('what is off by default in 1.37', () => {
  let folder: string
  let controlPlane: ControlPlane | undefined
  let controller: Controller | undefined
  let cluster: Cluster

  const logOf = () => readFileSync(join(folder, 'controller.log'), 'utf8')
  const nodeClaims = () => cluster.list('karpenter.sh/v1', 'NodeClaim')
  const untilRunning = (...names: readonly string[]) =>
    until(`${names.join()} run`, 90, async () => {
      controller?.assertRunning()
      const pods = await Promise.all(names.map((name) => cluster.get('v1', 'Pod', name, 'default')))
      return pods.every((pod) => pod?.status?.phase === 'Running')
    })
  /** What Tenon says of a pod that it does not serve. */
  const reasonOf = (name: string) =>
    until(`Tenon says why ${name} waits`, 60, async () => {
      const events = (await cluster.list('v1', 'Event', 'default')) as readonly (TestObject & {
        readonly involvedObject?: { readonly name?: string }
        readonly message?: string
        readonly reportingComponent?: string
      })[]
      return events.find(
        ({ involvedObject, reportingComponent }) =>
          involvedObject?.name === name && reportingComponent !== 'default-scheduler',
      )?.message
    })

  /** A control plane with these features, and the controller. False, and the test is skipped, on minors without them. */
  async function opened(t: TestContext, features: Features, template: object = {}): Promise<boolean> {
    const wanted = minorOf(process.env['TENON_KUBERNETES'] ?? '')
    if (wanted === undefined || wanted < 37) {
      t.skip('these gates and versions are those of 1.37: use --kubernetes 1.37')
      return false
    }
    controlPlane = await startControlPlane({ dir: join(folder, 'control-plane'), keep: true, features })
    const { kubeconfigPath, binDir } = controlPlane
    cluster = new Cluster(kubeconfigPath)
    const kubectl = ['--kubeconfig', kubeconfigPath, 'apply', '--server-side', '--force-conflicts', '-f', '-']
    execFileSync(join(binDir, 'kubectl'), kubectl, { input: crdsYaml(), encoding: 'utf8' })
    await until('the definitions are served', 20, () =>
      nodeClaims().then(
        () => true,
        () => false,
      ),
    )
    const [group, version] = ['karpenter.kwok.sh', 'v1alpha1']
    const nodeClass = { kind: 'KWOKNodeClass', metadata: { name: pool }, spec: {} }
    await cluster.create({ apiVersion: `${group}/${version}`, ...nodeClass })
    await cluster.create({
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodePool',
      metadata: { name: pool },
      spec: {
        disruption: { consolidationPolicy: 'WhenEmpty', consolidateAfter: 'Never' },
        template: {
          spec: {
            nodeClassRef: { group, kind: 'KWOKNodeClass', name: pool },
            requirements: [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }],
            ...template,
          },
        },
      },
    })
    controller = new Controller(kubeconfigPath, join(folder, 'controller.log'), {
      DISABLE_LEADER_ELECTION: 'true',
    })
    controller.start()
    return true
  }

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tenon-gates-'))
  })

  afterEach(async (context) => {
    if (controller !== undefined && 'passed' in context && !context.passed)
      process.stderr.write(logOf().split('\n').slice(-40).join('\n'))
    await controller?.end('SIGKILL')
    await controlPlane?.stop()
    controller = undefined
    controlPlane = undefined
    rmSync(folder, { recursive: true, force: true })
  })

  for (const version of ['v1beta1', 'v1alpha3'])
    test(`VER-50 PodGroups are read by ${version} where that is served`, async (t) => {
      const apis = [`scheduling.k8s.io/${version}`]
      if (!(await opened(t, { gates: ['GenericWorkload'], apis }))) return
      await cluster.create({
        apiVersion: `scheduling.k8s.io/${version}`,
        kind: 'PodGroup',
        metadata: { name: 'pair', namespace: 'default' },
        spec: { schedulingPolicy: { gang: { minCount: 2 } } },
      })
      await cluster.create(aPod('first', { schedulingGroup: { podGroupName: 'pair' } }))
      assert.match(await reasonOf('first'), /pair runs with at least 2 pods and has 1/)
      assert.deepEqual(await nodeClaims(), [])
      assert.doesNotMatch(logOf(), /"level":"ERROR"/)
    })

  test('VER-50 where no PodGroups are served pods are ordinary, without errors', async (t) => {
    if (!(await opened(t, { gates: [], apis: [] }))) return
    await cluster.create(aPod('alone', { schedulingGroup: { podGroupName: 'pair' } }))
    await untilRunning('alone')
    assert.doesNotMatch(logOf(), /"level":"ERROR"/)
  })

  test('VER-51 VER-56 tolerations that compare, and drains of pods with eviction responders', async (t) => {
    const gates = ['TaintTolerationComparisonOperators', 'EvictionRequestAPI']
    const taints = [{ key: 'size', value: '5', effect: 'NoSchedule' }]
    const template = { taints, terminationGracePeriod: `${deadlineMs / 1000}s` }
    if (!(await opened(t, { gates, apis: [] }, template))) return
    const tolerating = (operator: string, value: string) => ({
      tolerations: [{ key: 'size', operator, value, effect: 'NoSchedule' }],
    })
    await cluster.create(aPod('too-large', tolerating('Gt', '5')))
    assert.match(await reasonOf('too-large'), /size=5/)
    assert.deepEqual(await nodeClaims(), [])
    await cluster.create(
      aPod('fitting', {
        ...tolerating('Gt', '4'),
        evictionResponders: [{ name: 'example.com/nobody', priority: 1000 }],
      }),
    )
    await cluster.create(aPod('small', tolerating('Lt', '6')))
    await untilRunning('fitting', 'small')
    const claims = await nodeClaims()
    assert.equal(claims.length, 1)
    assert.equal((await cluster.get('v1', 'Pod', 'too-large', 'default'))?.spec?.nodeName, undefined)

    const sinceDeletion = elapsed()
    await cluster.delete('karpenter.sh/v1', 'NodeClaim', claims[0]?.metadata?.name ?? '')
    await until(
      'the node is drained and gone',
      60,
      async () => (await cluster.list('v1', 'Node')).length === 0,
    )
    assert.ok(sinceDeletion() < deadlineMs, `gone after ${sinceDeletion()} ms`)
  })
})
