/** `tenon explain` and `tenon simulate` of a user who may only read, on a real control plane (ask.md 1). */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { kinds, type Pod } from '@tenon/api'
import { parse, stringify } from 'yaml'
import {
  playRecording,
  recordedInstances,
} from '../../test/world/src/takeover/recorded-cluster.test-support.ts'
import { Stand } from '../src/takeover/stand.ts'
import { sharedControlPlane } from './cluster.ts'
import { Controller } from './tenon.ts'

const main = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))
const user = 'asking-user'
/** Nothing of Secrets and ConfigMaps, and no write. */
const rights = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name: user },
  rules: [
    {
      apiGroups: [''],
      resources: ['pods', 'nodes', 'namespaces', 'persistentvolumes', 'persistentvolumeclaims'],
      verbs: ['get', 'list', 'watch'],
    },
    {
      apiGroups: [
        'apps',
        'coordination.k8s.io',
        'karpenter.kwok.sh',
        'karpenter.sh',
        'policy',
        'resource.k8s.io',
        'scheduling.k8s.io',
        'storage.k8s.io',
      ],
      resources: ['*'],
      verbs: ['get', 'list', 'watch'],
    },
  ],
}
const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: user, namespace: 'default' } }
const binding = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name: user },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: user },
  subjects: [{ kind: 'ServiceAccount', name: user, namespace: 'default' }],
}
const granted = [account, rights, binding].map((each) => stringify(each)).join('---\n')

interface Outcome {
  readonly code: number
  readonly out: string
  readonly err: string
}

function run(program: string, args: readonly string[], input = ''): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = execFile(program, args, { timeout: 60_000 }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), out, err })
    })
    child.stdin?.end(input)
  })
}

/** A pod that asks for more than any instance type has, and tolerates the taint of NodePool `general`. */
const large: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'large', namespace: 'default', labels: { app: 'large' } },
  spec: {
    tolerations: [{ key: 'dedicated', operator: 'Exists' }],
    containers: [
      { name: 'app', image: 'registry.k8s.io/pause:3.10', resources: { requests: { cpu: '9999' } } },
    ],
  },
}

describe('questions about a real cluster', () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let stand: Stand
  let folder = ''
  let userConfig = ''

  const kubectl = async (args: readonly string[], input = ''): Promise<string> => {
    const all = [...args, '--kubeconfig', controlPlane.kubeconfigPath]
    const { code, out, err } = await run(join(controlPlane.binDir, 'kubectl'), all, input)
    assert.equal(code, 0, err)
    return out
  }

  /** What the user is answered; as the user of the API server unless a snapshot is asked. */
  const tenon = async (...args: readonly string[]): Promise<Outcome> => {
    const outcome = await run(process.execPath, [main, ...args, '--kubeconfig', userConfig])
    assert.equal(outcome.code, 0, outcome.err)
    return outcome
  }
  const explained = async (...args: readonly string[]): Promise<Answer> =>
    JSON.parse((await tenon('explain', ...args, '-o', 'json')).out) as Answer

  before(async () => {
    controlPlane = await sharedControlPlane()
    folder = mkdtempSync(join(tmpdir(), 'tenon-ask-'))
    stand = await Stand.open(controlPlane.kubeconfigPath)
    await kubectl(['apply', '-f', '-'], granted)
    const token = (await kubectl(['create', 'token', user, '--duration=1h'])).trim()
    const config = parse(readFileSync(controlPlane.kubeconfigPath, 'utf8')) as {
      users: { user: object }[]
    }
    for (const each of config.users) each.user = { token }
    userConfig = join(folder, 'kubeconfig')
    writeFileSync(userConfig, stringify(config), { mode: 0o600 })
  })

  beforeEach(async () => {
    await stand.clear()
    const { admin, clock } = stand
    const wanted = new Set(['general-a', 'general-b', 'fixed-a'])
    const instances = recordedInstances(clock.now()).filter(({ name }) => wanted.has(name))
    await playRecording(
      {
        create: (type, object) => admin.create(type, object),
        patchStatus: async (type, name, patch) => {
          await admin.patch(type, { name }, patch, { subresource: 'status' })
        },
        delete: (type, name) => admin.delete(type, { name }),
      },
      instances,
      clock.now(),
    )
    await admin.create(kinds.pod, large)
    await stand.until('kube-scheduler refuses the pod, and the others run', 60, async () => {
      const pods = await admin.list(kinds.pod)
      const others = pods.filter(({ metadata }) => metadata.name !== 'large')
      const refused = pods.find(({ metadata }) => metadata.name === 'large')?.status?.conditions
      return (
        refused?.some(({ type, reason }) => type === 'PodScheduled' && reason === 'Unschedulable') === true &&
        others.length > 0 &&
        others.every(({ status }) => status?.phase === 'Running')
      )
    })
  })

  after(async () => {
    await stand.clear()
    await stand.close()
    await kubectl(['delete', '--ignore-not-found', '-f', '-'], granted)
    rmSync(folder, { recursive: true, force: true })
    await controlPlane.stop()
  })

  test('EXP-10 a cluster as the Go Karpenter leaves it is explained and simulated, live and from a snapshot', async () => {
    const file = join(folder, 'karpenter.jsonl')
    const saved = await tenon('snapshot', 'save', file)
    assert.match(saved.err, /^Instance types: .+\n$/m)
    const live = await explained('pod', 'large')
    assert.deepEqual(withoutTime(await explained('pod', 'large', '-s', file)), withoutTime(live))
    assert.equal(live.case, 'waits')
    const against = live.pending?.nodePools.map(({ nodePool }) => nodePool) ?? []
    assert.equal(against.includes('general') && against.includes('fixed'), true, against.join(', '))
    assert.match(live.pending?.nodes?.message ?? '', /^0\/\d+ nodes are available: .*Insufficient cpu/)

    const node = await explained('nodeclaim', 'general-a')
    assert.deepEqual(withoutTime(await explained('nodeclaim', 'general-a', '-s', file)), withoutTime(node))

    const change = ['simulate', '--delete', 'nodepool/general', '-o', 'json']
    const simulated = JSON.parse((await tenon(...change)).out) as SimulationAnswer
    const offline = JSON.parse((await tenon(...change, '-s', file)).out) as SimulationAnswer
    assert.deepEqual(withoutTime(offline), withoutTime(simulated))
    assert.deepEqual(
      simulated.nodes.removed.map(({ nodeClaim }) => nodeClaim),
      ['general-a', 'general-b'],
    )
    assert.equal((await stand.admin.list(kinds.node)).length > 0, true)
  })

  test('EXP-11 the controller, its snapshot, and the objects without it give the same answers', async () => {
    const log = join(folder, 'controller.log')
    const controller = new Controller(controlPlane.kubeconfigPath, log, {
      DEBUG_PORT: '18082',
    })
    const file = join(folder, 'controller.jsonl')
    controller.start()
    let live: Answer
    try {
      await stand.until('the controller leads and answers', 60, async () => {
        controller.assertRunning()
        const { err } = await run(process.execPath, [
          main,
          'explain',
          'nodepool/fixed',
          '--kubeconfig',
          userConfig,
        ])
        return err === ''
      })
      live = await explained('pod', 'large')
      await tenon('snapshot', 'save', file)
      const shown = await run(process.execPath, [main, 'snapshot', 'show', file])
      assert.match(shown.out, /from the leading controller /)
      const offline = await explained('pod', 'large', '-s', file)
      assert.deepEqual(withoutTime(offline), withoutTime(live))
    } finally {
      await controller.end('SIGTERM')
    }
    const objects = await explained('pod', 'large')
    assert.deepEqual([objects.case, objects.code, objects.summary], [live.case, live.code, live.summary])
    assert.deepEqual(objects.pending?.nodePools, live.pending?.nodePools)
    assert.deepEqual(objects.pending?.nodes, live.pending?.nodes)
    const { nodes, changesNothing } = JSON.parse(
      (await tenon('simulate', '-s', file, '-o', 'json')).out,
    ) as SimulationAnswer
    assert.deepEqual([changesNothing, nodes.removed], [true, []])
  })
})

interface Answer {
  readonly case: string
  readonly code: string
  readonly summary: string
  readonly asOf?: unknown
  readonly pending?: {
    readonly nodePools: readonly { readonly nodePool: string; readonly code: string }[]
    readonly nodes?: { readonly message?: string }
  }
}

interface SimulationAnswer {
  readonly changesNothing: boolean
  readonly nodes: { readonly removed: readonly { readonly nodeClaim: string }[] }
}

/** Facts of two moments differ in their times. */
function withoutTime(answer: object): object {
  return JSON.parse(
    JSON.stringify(answer, (key, value: unknown) =>
      ['asOf', 'takenAt', 'at', 'until', 'since', 'forSeconds', 'message'].includes(key) &&
      typeof value === 'string' &&
      /\d/.test(value)
        ? '<time>'
        : key === 'asOf'
          ? '<time>'
          : value,
    ),
  ) as object
}
