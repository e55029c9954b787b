import { join } from 'node:path'

/** The folder of the repository. */
export const repositoryRoot: string = join(import.meta.dirname, '..')
