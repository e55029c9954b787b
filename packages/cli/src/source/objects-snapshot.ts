/** Takes a snapshot of a cluster's objects, if its controller cannot be reached. */
import { apiVersionOf, karpenterKinds, type NodePool } from '@tenon/api'
import { CatalogueProvider, type Snapshot, takeSnapshot } from '@tenon/ask/snapshot'
import { createCacheRegistry, createKubeClient } from '@tenon/kube'
import { defaultSettings } from '@tenon/operator/objects'
import { OperatorCore, QuestionDecider } from '@tenon/operator/questions'
import { eventLoopTurns, silentLogger, SystemRandom, type Transport } from '@tenon/runtime'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import type { ClusterConnection } from '../kubectl/connection.ts'
import type { SourceFlags } from '../kubectl/flags.ts'
import { version } from '../version.ts'
import { knownCatalogue } from './catalogue.ts'

/** Time limit of the lists. */
const listsMs = 60_000
/** How often it is looked whether only refused lists are missing. */
const lookMs = 200

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
  const refused = new Set<string>()
  const observed = createKubeClient({ transport: notingRefusals(config.transport, refused), clock })
  const operator = new OperatorCore({
    kubernetes: {
      client: observed,
      // Read once: a list is as good as a stream, and needs no right to watch before it is complete.
      registry: createCacheRegistry({ client: observed, clock, logger, random, useStreamedList: false }),
      events: { record: () => undefined },
    },
    provider,
    runtime: { clock, random, logger },
    decider: new QuestionDecider(clock),
    settings: { ...defaultSettings, clusterStateObservability: false },
  })
  const done = new AbortController()
  const signal = AbortSignal.any([io.interrupted, done.signal, AbortSignal.timeout(listsMs)])
  // A right that is missing does not come while somebody waits for the answer.
  const giveUp = async () => {
    while (!done.signal.aborted) {
      await clock.sleep(lookMs, done.signal)
      const { waitingFor } = operator
      if (waitingFor.length > 0 && waitingFor.every((plural) => refused.has(plural))) done.abort()
    }
  }
  giveUp().catch(() => undefined)
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
    done.abort()
    await operator.stop()
  }
}

function withKind(pool: NodePool): NodePool {
  return { ...pool, apiVersion: apiVersionOf(karpenterKinds.nodePool), kind: karpenterKinds.nodePool.kind }
}

/** @param refused receives the collections that may not be read, by their plural names. */
function notingRefusals(transport: Transport, refused: Set<string>): Transport {
  return {
    send: async (request, signal) => {
      const response = await transport.send(request, signal)
      const plural = request.path.split('?')[0]?.split('/').at(-1) ?? ''
      if (response.status === 403) refused.add(plural)
      else refused.delete(plural)
      return response
    },
  }
}
