/** Data about NodePools and node classes without a cluster. */
import type { OfflineCatalogue, ProviderEnvironment } from '@tenon/provider'
import { servedType } from './catalogue/instance-type.ts'
import { noOverrides, readOverrides } from './catalogue/overrides.ts'
import { poolRules } from './catalogue/pool-rules.ts'
import { servedFlavors } from './catalogue/served-flavors.ts'
import { defaultRegion } from './names.ts'
import type { CleverNodeClass } from './nodeclass/types.ts'
import { findingsOf } from './nodeclass/validation.ts'

/**
 * The built-in flavors with the changes of the file that `FLAVORS_CONFIG_PATH` names. An invalid file is reported and
 * ignored, as by the controller.
 * @throws Error if the file cannot be read.
 */
export async function offlineCatalogue(
  env: ProviderEnvironment,
  readText: (path: string) => Promise<string>,
): Promise<OfflineCatalogue> {
  const file = env['FLAVORS_CONFIG_PATH'] ?? ''
  const region = env['CLEVER_CLOUD_REGION'] ?? defaultRegion
  const { ok = noOverrides, error } = file === '' ? { ok: noOverrides } : readOverrides(await readText(file))
  const { flavors, priceUnit } = servedFlavors(ok)
  const types = flavors.map((size) =>
    servedType({ flavor: size.name, region, size, observed: undefined }, size.pricePerHour),
  )
  return {
    rules: poolRules,
    typesOf: () => ({ offered: types, known: types }),
    priceUnit,
    findingsOf: (nodeClass) => findingsOf(nodeClass as CleverNodeClass),
    problems: error === undefined ? [] : [{ file, message: error }],
  }
}
