/** Takes a snapshot of a cluster's objects, if its controller cannot be reached. */
import { apiVersionOf, karpenterKinds, type NodePool } from '@tenon/api'
import { CatalogueProvider, type Snapshot, takeSnapshot } from '@tenon/ask/snapshot'
import { createCacheRegistry } from '@tenon/kube'
import { defaultSettings } from '@tenon/operator/objects'
import { OperatorCore, QuestionDecider } from '@tenon/operator/questions'
import { eventLoopTurns, silentLogger, SystemRandom } from '@tenon/runtime'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import type { ClusterConnection } from '../kubectl/connection.ts'
import type { SourceFlags } from '../kubectl/flags.ts'
import { version } from '../version.ts'
import { knownCatalogue } from './catalogue.ts'

/** Time limit of the lists. */
const listsMs = 60_000

/** @throws CliError if a kind that decisions need cannot be listed. */
export async function snapshotOfObjects(
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
  const operator = new OperatorCore({
    kubernetes: {
      client,
      // A list needs no right to watch before it is complete.
      registry: createCacheRegistry({ client, clock, logger, random, isReadOnce: true }),
      events: { record: () => undefined },
    },
    provider,
    runtime: { clock, random, logger },
    decider: new QuestionDecider(clock),
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
    const snapshot = await takeSnapshot(
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
    // Without a NodePool that Tenon can serve nobody asks for types, but nodes have types and prices.
    return snapshot.catalogues.length === 0 ? { ...snapshot, catalogues } : snapshot
  } finally {
    await operator.stop()
  }
}

function withKind(pool: NodePool): NodePool {
  return { ...pool, apiVersion: apiVersionOf(karpenterKinds.nodePool), kind: karpenterKinds.nodePool.kind }
}
