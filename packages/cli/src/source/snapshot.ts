/** Where the facts of an answer come from: a file, the controller, or the objects of the cluster (ask.md 1). */
import { apiVersionOf, karpenterKinds, type NodePool } from '@tenon/api'
import { CatalogueProvider, type Snapshot, SnapshotReader, takeSnapshot } from '@tenon/ask'
import { createCacheRegistry } from '@tenon/kube'
import { defaultSettings, InlineDecider, Operator } from '@tenon/operator'
import { eventLoopTurns, rfc3339, silentLogger, SystemRandom } from '@tenon/runtime'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import { type ClusterConnection, onCluster } from '../kubectl/connection.ts'
import type { SourceFlags } from '../kubectl/flags.ts'
import { version } from '../version.ts'
import { knownCatalogue } from './catalogue.ts'
import { type ControllerReach, reachController, snapshotPath } from './controller.ts'
import { snapshotFile, whole } from './snapshot-file.ts'

/** A list that takes longer will not come. */
const listsMs = 60_000

/**
 * The facts that the flags name. What limits them is said on stderr.
 * @throws CliError when there are none.
 */
export async function snapshotFrom(io: Io, flags: SourceFlags): Promise<Snapshot> {
  const { snapshot: path } = flags
  if (path !== undefined) return await snapshotFile(io, path)
  if (flags.controller !== undefined) {
    const reached = await reachController(flags, undefined, io.interrupted)
    if (reached.kind === 'reached') return await controllerSnapshot(reached.reach, io.interrupted)
    throw new CliError('message' in reached ? reached.message : `no controller at ${flags.controller}`)
  }
  return await onCluster(io, flags, (connection) => snapshotOfCluster(io, flags, connection))
}

async function snapshotOfCluster(
  io: Io,
  flags: SourceFlags,
  connection: ClusterConnection,
): Promise<Snapshot> {
  const reached = await reachController(flags, connection, io.interrupted)
  if (reached.kind === 'reached') return await controllerSnapshot(reached.reach, io.interrupted)
  if (reached.kind === 'forbidden')
    io.err(
      `Warning: the controller is not asked, as the right to ${reached.right} is missing (${reached.message}); the answer comes from the objects of the cluster\n`,
    )
  if (reached.kind === 'unreachable')
    io.err(
      `Warning: the controller is not asked: ${reached.message}; the answer comes from the objects of the cluster\n`,
    )
  const snapshot = await snapshotOfObjects(io, flags, connection)
  if (snapshot.origin.kind === 'objects') io.err(`Instance types: ${snapshot.origin.catalogue}\n`)
  return snapshot
}

/**
 * The snapshot that the controller gives, read while it is written.
 * @throws CliError when what it gives is not whole.
 */
export async function controllerSnapshot(reach: ControllerReach, signal: AbortSignal): Promise<Snapshot> {
  const reader = new SnapshotReader()
  for await (const part of await reach.get(snapshotPath, signal)) reader.take(part)
  return whole(reader.end(), `the snapshot of ${reach.leader}`)
}

/** @throws CliError when a kind that decisions read cannot be listed. */
async function snapshotOfObjects(
  io: Io,
  flags: SourceFlags,
  connection: ClusterConnection,
): Promise<Snapshot> {
  const { client, clock, config } = connection
  const pools = await client.list<NodePool>(karpenterKinds.nodePool, { signal: io.interrupted })
  const { cloud, catalogues, origin } = await knownCatalogue(io, flags, connection, pools)
  const provider = new CatalogueProvider({ cloud, catalogues, objects: pools.map(withKind) })
  const random = new SystemRandom()
  const logger = silentLogger
  const operator = new Operator({
    kubernetes: {
      client,
      registry: createCacheRegistry({ client, clock, logger, random }),
      events: { record: () => undefined },
    },
    provider,
    runtime: { clock, random, logger },
    decider: new InlineDecider(clock),
    settings: { ...defaultSettings, clusterStateObservability: false },
  })
  const signal = AbortSignal.any([io.interrupted, AbortSignal.timeout(listsMs)])
  try {
    await operator.observe(signal).catch((cause: unknown) => {
      io.interrupted.throwIfAborted()
      throw new CliError(
        `these objects could not be listed: ${operator.waitingFor.join(', ')}; grant the right to list and watch them`,
        { cause },
      )
    })
    await operator.followGroups(signal)
    return await takeSnapshot(
      {
        operator,
        provider,
        origin: { kind: 'objects', server: config.server, catalogue: origin },
        program: `tenon ${version}`,
        clock,
        slicing: { clock, turns: eventLoopTurns, sliceMs: 50 },
      },
      io.interrupted,
    )
  } finally {
    await operator.stop()
  }
}

function withKind(pool: NodePool): NodePool {
  return { ...pool, apiVersion: apiVersionOf(karpenterKinds.nodePool), kind: karpenterKinds.nodePool.kind }
}

/** How old the facts of an answer are, and where they come from, as one sentence. */
export function originText({ takenAtMs, origin }: Pick<Snapshot, 'takenAtMs' | 'origin'>): string {
  const at = rfc3339(takenAtMs)
  if (origin.kind === 'objects')
    return `Facts of ${at}, from the objects of ${origin.server}; instance types: ${origin.catalogue}.`
  const who = origin.isLeading ? 'the leading controller' : 'a controller that does not lead'
  return `Facts of ${at}, from ${who} ${origin.identity}.`
}
