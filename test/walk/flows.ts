/** The flows that can be walked. Each loads its code when it is opened, after measuring has begun. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { KubeObject, ResourceType } from '@tenon/api'
import type { World } from '@tenon/world'

export interface Flow {
  /** Runs without the flow: its files are not counted. */
  readonly idle: () => Promise<void>
  /** Leads to the beginning of the flow. */
  readonly lead?: () => Promise<void>
  /** @param over called when the flow is over, if other work follows immediately. */
  readonly play: (over: () => void) => Promise<void>
  readonly close: () => Promise<void>
}

const minuteMs = 60_000
/** Longer than the periods of the loops that check everything. */
const idleMs = 10 * minuteMs

/** A cluster with one NodePool, and the operator that leads. */
async function open(provider: 'exoscale' | 'kwok'): Promise<World> {
  const { World, aKwokPool } = await import('@tenon/world')
  const { karpenterKinds } = await import('@tenon/api')
  const world = await World.start({ seed: 1, provider })
  const nodeClass = classes[provider]
  const { group, kind } = nodeClass.type
  const name = 'default'
  world.create(nodeClass.type, {
    apiVersion: `${group}/${nodeClass.type.version}`,
    kind,
    metadata: { name },
    spec: nodeClass.spec,
  } as KubeObject)
  const pool = aKwokPool()
  const { requirements } = pool.spec.template.spec
  const template = { spec: { nodeClassRef: { group, kind, name }, requirements } }
  world.create(karpenterKinds.nodePool, { ...pool, spec: { ...pool.spec, template } })
  await world.startOperator()
  return world
}

const classes = {
  kwok: { type: typeOf('karpenter.kwok.sh', 'v1alpha1', 'KWOKNodeClass', 'kwoknodeclasses'), spec: {} },
  exoscale: {
    type: typeOf('karpenter.exoscale.com', 'v1', 'ExoscaleNodeClass', 'exoscalenodeclasses'),
    spec: { imageTemplateSelector: {}, diskSize: 50 },
  },
}

function typeOf(group: string, version: string, kind: string, plural: string): ResourceType {
  return { group, version, kind, plural, namespaced: false }
}

async function until(world: World, what: string, done: () => boolean): Promise<void> {
  if (!(await world.clock.advanceUntil(done, 30 * minuteMs)))
    throw new Error(`${what}: not within 30 minutes`)
}

async function deploy(world: World, replicas: number): Promise<void> {
  const { aDeployment, deploymentKind } = await import('@tenon/world')
  world.create(deploymentKind, aDeployment('web', replicas, { cpu: '1', memory: '1Gi' }))
}

const hasClaim = (world: World) => world.claims().length > 0
const isReady = (world: World) =>
  hasClaim(world) &&
  world
    .claims()
    .every(({ status }) =>
      status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
    )
const runs = (world: World, count: number) =>
  world.pods().filter(({ status }) => status?.phase === 'Running').length === count &&
  world.pods().length === count

async function pod(): Promise<Flow> {
  const world = await open('kwok')
  const { karpenterKinds } = await import('@tenon/api')
  return {
    idle: () => world.clock.advance(idleMs),
    play: async (over) => {
      world.cluster.server.local.subscribe(karpenterKinds.nodeClaim, { added: over })
      await deploy(world, 1)
      await until(world, 'a NodeClaim', () => hasClaim(world))
    },
    close: () => world.stop(),
  }
}

const nodeclaim = (provider: 'exoscale' | 'kwok') => async (): Promise<Flow> => {
  const world = await open(provider)
  return {
    idle: () => world.clock.advance(idleMs),
    lead: async () => {
      await deploy(world, 1)
      await until(world, 'a NodeClaim', () => hasClaim(world))
    },
    play: () => until(world, 'a NodeClaim that is ready', () => isReady(world)),
    close: () => world.stop(),
  }
}

/** Most pods of a node are deleted; the rest moves to a smaller node. */
async function consolidation(): Promise<Flow> {
  const world = await open('kwok')
  let before = ''
  return {
    idle: () => world.clock.advance(idleMs),
    lead: async () => {
      await deploy(world, 10)
      await until(world, 'ten pods that run', () => runs(world, 10) && isReady(world))
      await world.clock.advance(idleMs)
      before = world.claims()[0]?.metadata.name ?? ''
    },
    play: async () => {
      world.scale('web', 2)
      const hasMoved = () =>
        runs(world, 2) && world.claims().every(({ metadata }) => metadata.name !== before)
      await until(world, 'a smaller node', hasMoved)
    },
    close: () => world.stop(),
  }
}

/** `tenon explain pod` on a snapshot that another thread writes. */
async function explain(): Promise<Flow> {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-walk-'))
  const path = join(folder, 'cluster.jsonl')
  const writer = new Worker(new URL('snapshot.ts', import.meta.url), { workerData: path })
  await new Promise((done, failed) => writer.once('exit', done).once('error', failed))
  const { createProgram } = await import('../../packages/cli/src/program.ts')
  const run = async (...args: readonly string[]) => {
    const program = await createProgram(
      {
        env: {},
        cwd: folder,
        out: () => {},
        err: () => {},
        isTerminal: false,
        input: async () => '',
        size: () => ({ columns: 80, rows: 24 }),
        interrupted: new AbortController().signal,
      },
      args[0],
    )
    await program.parseAsync(['node', 'tenon', ...args])
  }
  return {
    idle: () => run('version'),
    play: () => run('explain', 'pod', 'a', '-s', path),
    close: () => rm(folder, { recursive: true }),
  }
}

export const flows: Readonly<Record<string, () => Promise<Flow>>> = {
  pod,
  nodeclaim: nodeclaim('kwok'),
  consolidation,
  'exoscale-create': nodeclaim('exoscale'),
  explain,
}
