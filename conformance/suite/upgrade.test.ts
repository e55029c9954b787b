/** A control plane that is upgraded, and set back, under a running controller (docs/design/0012). */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { type ControlPlane, startControlPlane } from '../src/control-plane.ts'
import { aDeployment, Cluster, elapsed, until, untilInitialized } from './cluster.ts'
import { Controller, crdsYaml } from './tenon.ts'

/** The minor that it is upgraded to, from the default. */
const newer = process.env['TENON_UPGRADE_TO'] ?? '1.37'

describe('a control plane that changes its version', () => {
  let folder: string
  let controlPlane: ControlPlane
  let controller: Controller
  let cluster: Cluster

  const logOf = () => readFileSync(join(folder, 'controller.log'), 'utf8')
  const kubectl = (args: readonly string[], input = '') =>
    execFileSync(
      join(controlPlane.binDir, 'kubectl'),
      ['--kubeconfig', controlPlane.kubeconfigPath, ...args],
      { input, encoding: 'utf8' },
    )
  const start = (port?: number, minor?: string) =>
    startControlPlane({
      dir: join(folder, 'control-plane'),
      keep: true,
      ...(port !== undefined && { port }),
      environment: { ...process.env, TENON_KUBERNETES: minor },
    })
  /** Names and UIDs of Nodes and NodeClaims, and the node of each pod. */
  const state = async () => {
    const nodes = await cluster.list('v1', 'Node')
    const claims = await cluster.list('karpenter.sh/v1', 'NodeClaim')
    const pods = await cluster.list('v1', 'Pod', 'default')
    return {
      objects: [...nodes, ...claims].map(({ metadata }) => `${metadata?.name} ${metadata?.uid}`).toSorted(),
      pods: pods.map(({ metadata, spec }) => `${metadata?.uid} ${String(spec?.['nodeName'])}`).toSorted(),
    }
  }
  const areRunning = (app: string, count: number) =>
    until(`${count} pods of ${app} run`, 90, async () => {
      controller.assertRunning()
      const pods = await cluster.list('v1', 'Pod', 'default', `app=${app}`)
      return pods.filter(({ status }) => status?.phase === 'Running').length === count
    })

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tenon-upgrade-'))
    controlPlane = await start()
    cluster = new Cluster(controlPlane.kubeconfigPath)
    kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], crdsYaml())
    await until('the definitions are served', 20, () =>
      cluster.list('karpenter.sh/v1', 'NodeClaim').then(
        () => true,
        () => false,
      ),
    )
    await cluster.create({
      apiVersion: 'karpenter.kwok.sh/v1alpha1',
      kind: 'KWOKNodeClass',
      metadata: { name: 'upgrade' },
      spec: {},
    })
    await cluster.create({
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodePool',
      metadata: { name: 'upgrade' },
      spec: {
        disruption: { consolidationPolicy: 'WhenEmptyOrUnderutilized', consolidateAfter: '0s' },
        template: {
          spec: {
            nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'upgrade' },
            requirements: [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }],
          },
        },
      },
    })
    // One API server is away for longer than a lease lasts; those of an upgrade take turns.
    controller = new Controller(controlPlane.kubeconfigPath, join(folder, 'controller.log'), {
      DISABLE_LEADER_ELECTION: 'true',
    })
    controller.start()
  })

  afterEach((context) => {
    if ('passed' in context && !context.passed)
      process.stderr.write(logOf().split('\n').slice(-40).join('\n'))
  })

  after(async () => {
    await controller.end('SIGTERM')
    await controlPlane.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('VER-3 the controller goes on, touches no node, and acts as on the new version within a minute', async () => {
    await cluster.create(aDeployment({ name: 'before', replicas: 6, cpu: '900m', memory: '256Mi' }))
    await areRunning('before', 6)
    await untilInitialized(cluster, 30)
    const older = controlPlane.version
    const port = Number(new URL(controlPlane.endpoint).port)
    const known = await state()
    for (const [step, minor] of [newer, undefined].entries()) {
      const sinceStop = elapsed()
      await controlPlane.stop()
      controlPlane = await start(port, minor)
      assert.equal(controlPlane.version === older, minor === undefined, controlPlane.version)
      // Until then a decision may rest on the version before.
      await until('a minute has passed', 75, () => Promise.resolve(sinceStop() > 60_500))
      const name = `after-${step}`
      await cluster.create(aDeployment({ name, replicas: 2, cpu: '7', memory: '256Mi' }))
      await areRunning(name, 2)
      await until(`the controller knows ${controlPlane.version}`, 10, () => {
        controller.assertRunning()
        const told = logOf()
          .split('\n')
          .filter((line) => line.includes('"planned placement"'))
        return Promise.resolve(told.at(-1)?.includes(`"${controlPlane.version}"`) === true)
      })
      const now = await state()
      for (const each of known.objects) assert.ok(now.objects.includes(each), `${each} has gone`)
      for (const each of known.pods) assert.ok(now.pods.includes(each), `pod ${each} has gone or moved`)
    }
    assert.doesNotMatch(logOf(), /disrupting node|evicted pod/)
  })
})
