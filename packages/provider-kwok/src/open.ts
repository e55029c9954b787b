/** Opens the KWOK provider with its settings, which are environment variables. */
import { readFileSync } from 'node:fs'
import type { InstanceType } from '@tenon/api'
import { type ProviderEnvironment, type ProviderKubernetes, ProviderSettingError } from '@tenon/provider'
import type { Logger, Runtime } from '@tenon/runtime'
import { readCatalogue } from './catalogue-file.ts'
import { kwokNodeClassKind } from './nodeclass.ts'
import { KwokProvider } from './provider.ts'

/** A partition's name is a label value. */
const partitionForm = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/

interface Dependencies {
  readonly kubernetes: Pick<ProviderKubernetes, 'client' | 'registry'>
  readonly runtime: Runtime
}

/** @throws ProviderSettingError for an invalid variable. An unreadable catalogue is only logged. */
export function openKwok(env: ProviderEnvironment, { kubernetes, runtime }: Dependencies): KwokProvider {
  const path = env['INSTANCE_TYPES_FILE_PATH'] ?? ''
  return new KwokProvider({
    client: kubernetes.client,
    runtime,
    nodeClasses: kubernetes.registry.cache(kwokNodeClassKind),
    partitions: partitions(env['KWOK_PARTITIONS'] ?? ''),
    ...(path !== '' && { instanceTypes: catalogue(path, runtime.logger) }),
  })
}

/**
 * The types of a file; none if it cannot be read, so that the controller runs and reports why nothing is launched.
 */
function catalogue(path: string, logger: Logger): readonly InstanceType[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    logger.error('INSTANCE_TYPES_FILE_PATH cannot be read, so there are no instance types', { path, error })
    return []
  }
  const { types, problems } = readCatalogue(text)
  for (const problem of problems)
    logger.error('INSTANCE_TYPES_FILE_PATH has an invalid entry', { path, error: problem })
  if (types.length === 0) logger.error('INSTANCE_TYPES_FILE_PATH contains no instance type', { path })
  return types
}

function partitions(text: string): readonly string[] {
  if (text === '') return ['a']
  const names = text.split(',').map((name) => name.trim())
  const wrong = names.find((name) => !partitionForm.test(name))
  if (wrong === undefined) return names
  throw new ProviderSettingError(
    `KWOK_PARTITIONS=${text}: "${wrong}" is not a valid name; use names such as a,b,c`,
  )
}
