/** What docs/ask/explain.md shows of a ProvisioningRequest, and what is said of others. */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Condition, KubeObject, Pod, PodSpec, PodTemplate, ProvisioningRequest } from '@tenon/api'
import { writeSnapshot } from '@tenon/ask'
import { aNode, aPool, aSnapshot, aType } from '@tenon/ask/test-clusters'
import { runCommand } from '../../testing/command.test-support.ts'

const namespace = 'research'
const atomic = 'best-effort-atomic-scale-up.autoscaling.x-k8s.io'

function aTemplate(name: string, cpu: string, more: Partial<PodSpec> = {}): PodTemplate {
  return {
    apiVersion: 'v1',
    kind: 'PodTemplate',
    metadata: { name, namespace, uid: `template-${name}` },
    template: { spec: { containers: [{ name: 'c', resources: { requests: { cpu } } }], ...more } },
  }
}

function aRequest(
  name: string,
  podSets: Readonly<Record<string, number>>,
  { className = atomic, conditions = [] }: { className?: string; conditions?: readonly Condition[] } = {},
): ProvisioningRequest {
  return {
    apiVersion: 'autoscaling.x-k8s.io/v1',
    kind: 'ProvisioningRequest',
    metadata: { name, namespace, uid: `request-${name}`, creationTimestamp: '2026-11-26T11:00:00Z' },
    spec: {
      provisioningClassName: className,
      podSets: Object.entries(podSets).map(([template, count]) => ({
        podTemplateRef: { name: template },
        count,
      })),
    },
    status: { conditions },
  }
}

const condition = (type: string, status: 'True' | 'False', reason: string, message = ''): Condition => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: '2026-11-26T11:55:00Z',
})

async function explained(t: TestContext, objects: readonly KubeObject[], ...args: readonly string[]) {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-explain-'))
  t.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'cluster.jsonl')
  await writeSnapshot(path, aSnapshot(objects, [aType('large', 8)]))
  return await runCommand(['explain', ...args, '-n', namespace, '-s', path])
}

test('EXP-29 what docs/ask/explain.md shows of a ProvisioningRequest is what the command prints', async (t) => {
  const page = await readFile(join(import.meta.dirname, '../../../../../docs/ask/explain.md'), 'utf8')
  const [, shown = ''] = /^\$ tenon explain provreq training .*\n([^]*?)^```$/m.exec(page) ?? []
  const { out, code } = await explained(
    t,
    [
      aPool('web'),
      aTemplate('workers', '7'),
      aTemplate('launcher', '1', { nodeSelector: { disk: 'ssd' } }),
      aRequest('training', { workers: 3, launcher: 1 }),
    ],
    'provreq',
    'training',
  )
  assert.equal(code, 0)
  const pattern = shown.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&').replaceAll('…', '.*')
  assert.match(out, new RegExp(`^${pattern}$`))
})

test('what only checks counts nodes that are there', async (t) => {
  const checks = 'check-capacity.autoscaling.x-k8s.io'
  const objects = [aPool('web'), aNode('there', '4'), aTemplate('main', '3')]
  const { out } = await explained(
    t,
    [...objects, aRequest('two', { main: 2 }, { className: checks })],
    'provreq/two',
  )
  assert.match(
    out,
    /^provisioningrequest\/two in research: 1 of its 2 pods would find room on nodes that are there, /,
  )
  assert.match(
    out,
    /✗ 1 of 2 pods of PodTemplate main: No node that is there has room for it beside .*\n {2}It would run after one of these changes/,
  )
  const one = await explained(
    t,
    [...objects, aRequest('one', { main: 1 }, { className: checks })],
    'provreq/one',
  )
  assert.match(one.out, /: There is room for its 1 pod on nodes that are there now\n/)
})

test('a request that has room, has ended, or is not served says so', async (t) => {
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'c',
      namespace,
      uid: 'c',
      annotations: { 'autoscaling.x-k8s.io/consume-provisioning-request': 'booked' },
    },
    spec: { nodeName: 'there', containers: [{ name: 'c' }] },
  }
  const objects = [
    aPool('web'),
    aNode('there', '8'),
    pod,
    aTemplate('main', '1'),
    aRequest('booked', { main: 2 }, { conditions: [condition('Provisioned', 'True', 'CapacityIsFound')] }),
    aRequest(
      'failed',
      { main: 2 },
      { conditions: [condition('Failed', 'True', 'Expired', 'No room in time')] },
    ),
    aRequest('others', { main: 2 }, { className: 'queued-provisioning.gke.io' }),
    aRequest('bare', { main: 1, missing: 2 }),
    aRequest(
      'coming',
      { main: 1 },
      {
        conditions: [
          condition(
            'Provisioned',
            'False',
            'CapacityIsBeingProvisioned',
            'It takes 1 node: 1 launched, 0 ready',
          ),
        ],
      },
    ),
  ]
  const { out, code } = await explained(t, objects, 'provisioningrequests')
  assert.equal(code, 0)
  for (const line of [
    'booked in research: Room is kept for its 2 pods until 2026-11-26T12:05:00Z; 1 of them have a node',
    'failed in research: It has ended (Failed, Expired): No room in time; it is not tried again: make another request',
    'others in research: Its class queued-provisioning.gke.io is served by somebody else, if by anybody',
    'bare in research: Its pods are not known: 1 PodTemplate missing: missing',
    'coming in research: Its nodes are on their way: It takes 1 node: 1 launched, 0 ready',
  ])
    assert.ok(out.includes(`provisioningrequest/${line}\n`), out)
  const missing = await explained(t, objects, 'provreq', 'nobody')
  assert.equal(
    missing.err,
    'Error from server (NotFound): provisioningrequests.autoscaling.x-k8s.io "nobody" not found\n',
  )
  const json = await explained(t, objects, 'provreq', 'bare', '-o', 'json')
  assert.match(json.out, /"kind": "ProvisioningRequestExplanation"/)
})
