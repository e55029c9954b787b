/**
 * Which kinds are served and readable, as older clusters and older permissions lack some (cluster-autoscaler.md 1.5).
 */
import { pathOf, type ResourceType } from '@tenon/api'
import { type Clock, type Logger, readText, type Transport } from '@tenon/runtime'

const retryMs = 2000

export interface ReadableKindsDependencies {
  readonly transport: Transport
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Those of `types` that can be read. Kinds that are not served or forbidden are logged once and left out; other errors
 * are retried.
 * @throws the signal's reason.
 */
export async function readableKinds<T extends ResourceType>(
  types: readonly T[],
  dependencies: ReadableKindsDependencies,
  signal: AbortSignal,
): Promise<readonly T[]> {
  const found = await Promise.all(types.map((type) => isReadable(type, dependencies, signal)))
  return types.filter((_, at) => found[at] === true)
}

async function isReadable(
  type: ResourceType,
  { transport, clock, logger }: ReadableKindsDependencies,
  signal: AbortSignal,
): Promise<boolean> {
  for (;;) {
    try {
      const path = `${pathOf(type)}?limit=1`
      const { status, body } = await transport.send({ method: 'GET', path, headers: {} }, signal)
      await readText(body)
      if (status < 400) return true
      if (status === 403 || status === 404) {
        logger.info('kind cannot be read, going on without it', { kind: type.kind, status })
        return false
      }
    } catch (error) {
      signal.throwIfAborted()
      logger.debug('kind not asked for yet', { kind: type.kind, error })
    }
    await clock.sleep(retryMs, signal)
  }
}
