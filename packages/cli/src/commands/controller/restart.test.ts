/** What a controller keeps on disk outlives it: its journal, and its recording of the cluster. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Node, NodeClaim } from '@tenon/api'
import { readTraceFile, recordingOf } from '@tenon/ask'
import { serveHttp } from '@tenon/runtime'
import {
  controllerSettings,
  eventually,
  kubectlOut,
  objectsOf,
  runTenon,
  startCluster,
  startTenon,
  temporaryDirectory,
  type TenonProcess,
} from '../../testing/tenon-process.test-support.ts'

const deployment = (name: string, cpu: string): string => `
apiVersion: apps/v1
kind: Deployment
metadata: { name: ${name} }
spec:
  replicas: 1
  selector: { matchLabels: { app: ${name} } }
  template:
    metadata: { labels: { app: ${name} } }
    spec:
      terminationGracePeriodSeconds: 0
      priorityClassName: important
      containers: [{ name: app, image: app, env: [{ name: KEY, value: hush }], resources: { requests: { cpu: "${cpu}" } } }]
`

const manifests = `
apiVersion: karpenter.exoscale.com/v1
kind: ExoscaleNodeClass
metadata: { name: default }
spec: { imageTemplateSelector: {}, diskSize: 50 }
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: { name: important }
value: 1000
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: default }
spec:
  template:
    spec:
      nodeClassRef: { group: karpenter.exoscale.com, kind: ExoscaleNodeClass, name: default }
      requirements:
        - { key: exoscale.com/instance-family, operator: In, values: [standard] }
  disruption: { consolidateAfter: 0s, budgets: [{ nodes: "100%" }] }
---${deployment('large', '12')}---${deployment('small', '500m')}`

const within = '--timeout=120s'

/** A controller that keeps its journal and a recording in `cwd`. */
async function started(t: TestContext, cwd: string): Promise<TenonProcess> {
  const files = [`--journal-path=${join(cwd, 'journal')}`, `--record-path=${join(cwd, 'cluster.tnr')}`]
  const ports = ['--metrics-port=0', '--health-probe-port=0', `--debug-port=${await freePort()}`]
  const args = ['controller', '--provider=exoscale', ...files, ...ports]
  const settings = await controllerSettings(cwd)
  return startTenon(t, cwd, args, { ...settings, LEADER_ELECTION_NAMESPACE: 'kube-system' })
}

async function freePort(): Promise<number> {
  const server = await serveHttp(() => Promise.reject(new Error('unused')), { host: '127.0.0.1', port: 0 })
  await server.close()
  return server.port
}

test('EXP-7 EXP-16 what a controller has noted is told and replayed after a restart', async (t) => {
  const cwd = await temporaryDirectory(t)
  await startCluster(t, cwd, 'devcluster', '--boot-delay', '500ms')
  await kubectlOut(cwd, ['apply', '--server-side', '-f', '-'], (await runTenon(t, cwd, ['crds'])).out)
  await kubectlOut(cwd, ['apply', '-f', '-'], manifests)
  const first = await started(t, cwd)
  await kubectlOut(cwd, ['rollout', 'status', 'deployment/large', within])
  await kubectlOut(cwd, ['rollout', 'status', 'deployment/small', within])
  const [node, ...others] = await objectsOf<Node>(cwd, 'nodes')
  const [claim] = await objectsOf<NodeClaim>(cwd, 'nodeclaims')
  assert.ok(claim !== undefined && node !== undefined && others.length === 0, first.out())
  const before = node.metadata.name
  await kubectlOut(cwd, ['delete', 'deployment', 'large'])
  // A smaller node takes its place.
  await kubectlOut(cwd, ['wait', '--for=delete', `nodeclaim/${claim.metadata.name}`, within])
  await kubectlOut(cwd, ['rollout', 'status', 'deployment/small', within])
  const KUBECONFIG = '.tenon/kubeconfig'
  const explained = async (what: string): Promise<string> => {
    const { code, out, err } = await runTenon(t, cwd, ['explain', what], { KUBECONFIG })
    assert.equal(code, 0, err)
    return out
  }
  const isGone =
    /: It is gone: Underutilized at [\dTZ:.-]+ \(replace: \[.*\] -> \[1 replacement\]\); NodeClaim default-\w+ came in its place, which saves 1\.\d{4} EUR per hour/
  const [once = ''] = (await explained(`node/${before}`)).split('\n')
  assert.match(once, isGone)
  assert.deepEqual(await first.end('SIGTERM'), { code: 0, signal: null }, first.err())

  const second = await started(t, cwd)
  const again = await eventually(
    async () => {
      const { out } = await runTenon(t, cwd, ['explain', `node/${before}`], { KUBECONFIG })
      return out === '' ? undefined : out
    },
    () => second.out() + second.err(),
  )
  assert.equal(again.split('\n')[0], once)
  // The move with both prices, and what it was launched for.
  assert.match(again, /move Underutilized: .*\(\d\.\d{4} per hour -> \d\.\d{4} EUR per hour\)/)
  assert.match(again, /^Made by: .*launch Provisioned: /m)
  assert.match(await explained(`nodeclaim/${claim.metadata.name}`), isGone)
  assert.deepEqual(await second.end('SIGTERM'), { code: 0, signal: null }, second.err())

  const path = join(cwd, 'cluster.tnr')
  const read = await readTraceFile(path)
  assert.ok('records' in read)
  assert.deepEqual(read.end, { kind: 'whole' })
  assert.doesNotMatch(JSON.stringify(read.records), /hush/)
  const recording = recordingOf(read.records)
  assert.ok(!('message' in recording), JSON.stringify(recording))
  assert.equal(recording.gaps.length, 1)
  assert.deepEqual([recording.allNodes.length, recording.figures.unpricedNodes], [2, 0])
  assert.ok((recording.catalogues ?? []).length > 0)
  const { code, out, err } = await runTenon(t, cwd, ['replay', 'cluster.tnr'])
  assert.equal(code, 0, err)
  assert.match(out, /^as recorded +\d/m)
  assert.match(out, /^replayed +\d/m)
})
