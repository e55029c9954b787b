import type { OfflineCatalogue, ProviderEnvironment } from '@tenon/provider'
import { defaultCatalogue } from './catalogue.ts'
import { readCatalogue } from './catalogue-file.ts'
import { choosableLabels } from './instance-type.ts'
import { kwokNodeClassKind } from './nodeclass.ts'

/**
 * The types in the file that `INSTANCE_TYPES_FILE_PATH` names, else the built-in ones.
 * @throws Error if the file cannot be read.
 */
export async function offlineCatalogue(
  env: ProviderEnvironment,
  readText: (path: string) => Promise<string>,
): Promise<OfflineCatalogue> {
  const file = env['INSTANCE_TYPES_FILE_PATH'] ?? ''
  const { types, problems } =
    file === '' ? { types: defaultCatalogue(), problems: [] } : readCatalogue(await readText(file))
  // What the controller would log and ignore.
  const listed =
    types.length === 0 ? [...problems, 'contains no instance type: nothing can be launched'] : problems
  return {
    rules: {
      wellKnownLabels: choosableLabels(types),
      restrictedDomains: [kwokNodeClassKind.group],
    },
    typesOf: () => ({ offered: types, known: types }),
    findingsOf: () => [],
    problems: listed.map((message) => ({ file, message })),
  }
}
