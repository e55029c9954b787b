/** `tenon migrate`: connects to the cluster and to the cloud of the node group (adoption.md 2). */
import { hostname } from 'node:os'
import { createAccessReviews, createKubeClient, fencedTransport } from '@tenon/kube'
import { isProviderSettingError, type NodeGroupModule, unboundedGroupSize } from '@tenon/provider'
import { SystemRandom, type Transport, uuid } from '@tenon/runtime'
import { CliError, KubectlError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { type ClusterConnection, onCluster } from '../../kubectl/connection.ts'
import type { ClusterFlags } from '../../kubectl/flags.ts'
import { isNameOf, nodePoolKind } from '../../kubectl/kinds.ts'
import { builtInProviders } from '../../providers.ts'
import { withNodeGroupCloud } from '../../source/node-group-cloud.ts'
import { snapshotOfCluster } from '../../source/snapshot.ts'
import { MigrationLock } from './lock.ts'
import { migrate, type MigrateOrder } from './migrate.ts'
import { jsonPrinter, textPrinter } from './print.ts'

export interface MigrateFlags extends ClusterFlags {
  /** Kind and name, as one word or two. */
  readonly from: readonly string[]
  readonly to: readonly string[]
  readonly yes?: true
  /** Milliseconds. */
  readonly timeout: number
  readonly nodes?: number
  readonly output: 'text' | 'json'
}

const requestTimeoutMs = 60_000

export async function runMigrate(io: Io, flags: MigrateFlags): Promise<void> {
  const order = orderOf(flags)
  const cloud = builtInProviders.find(({ nodeGroupKind }) => nodeGroupKind === order.group.kind)
  const lock = new MigrationLock()
  const fenced = (transport: Transport) => fencedTransport(transport, () => lock.isHeld)
  const migrateOn = async (connection: ClusterConnection) => {
    const { client, clock, config } = connection
    const reviews = createAccessReviews({ transport: config.transport, clock })
    const random = new SystemRandom()
    const workload = {
      client,
      server: config.server,
      who: 'you',
      isAllowed: (right: Parameters<typeof reviews.isAllowed>[0], signal: AbortSignal) =>
        reviews.isAllowed(right, undefined, signal),
    }
    const sources = {
      io,
      flags: { cloudProvider: cloud?.name ?? '', nodeGroupAutoDiscovery: [], nodes: [] },
      running: undefined,
      workload,
      nodes: [],
      clock,
      requestTimeoutMs,
    }
    await withNodeGroupCloud(sources, async ({ nodeGroups, dependencies }) => {
      await migrate(
        {
          client,
          clock,
          lock,
          lockOptions: {
            client: createKubeClient({ transport: config.transport, clock, requestTimeoutMs }),
            clock,
            random,
            identity: `${hostname()}_${uuid(random)}`,
          },
          openGroups: (names) =>
            opened(nodeGroups, {
              ...dependencies,
              clusters: {
                workload: { client, server: config.server },
                management: { client, server: config.server },
              },
              nodeGroupSpecs: names.map((name) => `0:${unboundedGroupSize}:${name}`),
              allowsEmptyGroups: true,
              cloud: { fenced, userAgent: dependencies.userAgent },
            }),
          snapshot: () => snapshotOfCluster(io, flags, connection),
          printer: flags.output === 'json' ? jsonPrinter(io.out, clock) : textPrinter(io.out),
          reviews,
          signal: io.interrupted,
        },
        order,
      )
    })
  }
  await onCluster(io, flags, migrateOn, fenced)
}

function opened(module: NodeGroupModule, dependencies: Parameters<NodeGroupModule['open']>[0]) {
  try {
    return module.open(dependencies)
  } catch (cause) {
    if (!isProviderSettingError(cause)) throw cause
    throw new CliError(cause.message, { cause })
  }
}

/** @throws KubectlError unless one side is a node group and the other a NodePool. */
function orderOf({ from, to, yes, timeout, nodes }: MigrateFlags): MigrateOrder {
  const [source, target] = [sideOf('--from', from), sideOf('--to', to)]
  const direction = target.isPool ? 'there' : 'back'
  if (source.isPool === target.isPool)
    throw new KubectlError(
      `error: one of --from and --to must be a nodepool, the other ${groupKinds.join(' or ')}`,
    )
  if (nodes !== undefined && direction === 'there')
    throw new KubectlError('error: --nodes is the size that a node group gets: --to must name one')
  const [pool, group] = target.isPool ? [target, source] : [source, target]
  return {
    group: { kind: group.kind, name: group.name },
    nodePool: pool.name,
    direction,
    isConfirmed: yes === true,
    limitMs: timeout,
    ...(nodes !== undefined && { nodes }),
  }
}

const groupKinds = builtInProviders.flatMap(({ nodeGroupKind }) => nodeGroupKind ?? [])

function sideOf(flag: string, words: readonly string[]) {
  const parts = words.length === 1 ? (words[0] ?? '').split('/') : words
  const [kind = '', name = ''] = parts
  if (parts.length !== 2 || name === '')
    throw new KubectlError(
      `error: ${flag} names one side: nodepool NAME, or ${groupKinds.join(' or ')} and a name or an id`,
    )
  if (isNameOf(nodePoolKind, kind)) return { isPool: true, kind, name }
  if (groupKinds.includes(kind)) return { isPool: false, kind, name }
  throw new KubectlError(`error: ${flag}: "${kind}" is unknown: use nodepool, or ${groupKinds.join(' or ')}`)
}
