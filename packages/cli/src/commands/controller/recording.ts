/** `--record-path`: records in the controller what `tenon record` records (ask.md 6). */
import { rename } from 'node:fs/promises'
import { type InstanceType, labels, type Node, ownValue, type PricePerHour } from '@tenon/api'
import {
  priceOfLabels,
  Recorder,
  resumedFile,
  type SnapshotCatalogue,
  sharedCatalogues,
  type TraceFile,
} from '@tenon/ask/record'
import { createKubeClient } from '@tenon/kube'
import type { Operator } from '@tenon/operator'
import { eventLoopTurns, type Runtime, type Transport } from '@tenon/runtime'
import { version } from '../../version.ts'

export interface RecordingParts {
  /** The file to create or continue. */
  readonly path: string
  readonly server: string
  readonly transport: Transport
  readonly operator: Pick<Operator, 'caches' | 'questions' | 'synced'>
  readonly runtime: Runtime
  /** A larger file is rotated; default 256 MiB. */
  readonly mostBytes?: number
}

const defaultMostBytes = 256 * 1024 * 1024
/** How often prices are refreshed and the size of the file is checked. */
const lookMs = 60_000
/** Pause after a failure of the file system. */
const retryMs = 5 * 60_000
const sliceMs = 5

/**
 * Records until `signal` aborts, and resolves once everything is written. File errors are logged and retried:
 * the controller must run without its recording.
 */
export async function keepRecording(parts: RecordingParts, signal: AbortSignal): Promise<void> {
  const { operator, path, runtime } = parts
  const { clock, logger } = runtime
  try {
    await operator.synced(signal)
    while (!signal.aborted) {
      const isFull = await recordOneFile(parts, signal).catch((error: unknown) => {
        if (signal.aborted) throw error
        logger.error('nothing is recorded; it is tried again in five minutes', { file: path, error })
        return false
      })
      if (isFull) await rename(path, `${path}.1`)
      else await clock.sleep(retryMs, signal)
    }
  } catch (error) {
    if (!signal.aborted) logger.error('nothing is recorded', { file: path, error })
  }
}

/** @returns true if the file is full. */
async function recordOneFile(parts: RecordingParts, signal: AbortSignal): Promise<boolean> {
  const { mostBytes = defaultMostBytes, operator, path, runtime, server, transport } = parts
  const { clock, logger, random } = runtime
  const resumed = await resumedFile(path, { clock, turns: eventLoopTurns, sliceMs })
  if ('message' in resumed) throw new Error(`${resumed.message}; use another file, or remove it`)
  const { file, state } = resumed
  const prices = new CataloguePrices(parts)
  const recorder = new Recorder(
    {
      client: createKubeClient({ transport, clock, userAgent: `tenon-record/${version}` }),
      clock,
      random,
      logger,
      sink: file,
    },
    {
      program: `tenon ${version}`,
      source: server,
      catalogues: await prices.read(signal),
      priceOf: (node) => prices.of(node),
      readsPriorityClasses: false,
      resume: state,
    },
  )
  const look = async (): Promise<void> => {
    recorder.sells(await prices.read(signal))
  }
  // A new or newly ready NodePool may launch nodes within seconds.
  const unfollow = operator.caches.nodePools.onChange(({ object }) => {
    if (prices.knows(object.metadata.name)) return
    look().catch((error: unknown) => {
      if (!signal.aborted) logger.warn('what NodePools can buy is not known now', { error })
    })
  })
  try {
    await recorder.start(signal)
    logger.info('recording', { file: path })
    return await filled(file, mostBytes, async () => {
      await clock.sleep(lookMs, signal)
      await look()
    })
  } finally {
    unfollow()
    await recorder.stop()
    await file.close()
  }
}

/** Resolves once the file has reached the size. Rejects if `pause` rejects. */
async function filled(file: TraceFile, mostBytes: number, pause: () => Promise<void>): Promise<boolean> {
  while ((await file.bytes) < mostBytes) await pause()
  return true
}

/** Prices of nodes according to the catalogues of their NodePools. */
class CataloguePrices {
  readonly #parts: Pick<RecordingParts, 'operator'>
  #catalogues: readonly SnapshotCatalogue[] = []

  constructor(parts: Pick<RecordingParts, 'operator'>) {
    this.#parts = parts
  }

  async read(signal: AbortSignal): Promise<readonly SnapshotCatalogue[]> {
    this.#catalogues = sharedCatalogues(await this.#parts.operator.questions().catalogue(signal))
    return this.#catalogues
  }

  knows(nodePool: string): boolean {
    return this.#typesOf(nodePool) !== undefined
  }

  of({ metadata }: Node): PricePerHour {
    const nodePool = ownValue(metadata.labels, labels.nodePool) ?? ''
    return priceOfLabels(this.#typesOf(nodePool) ?? [], metadata.labels ?? {})
  }

  #typesOf(nodePool: string): readonly InstanceType[] | undefined {
    return this.#catalogues.find(({ nodePools }) => nodePools.includes(nodePool))?.instanceTypes
  }
}
