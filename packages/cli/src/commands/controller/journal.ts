/** `--journal-path`: a journal that survives restarts. */
import type { Journal } from '@tenon/operator'
import type { Logger } from '@tenon/runtime'
import type { JournalFiles } from './journal-files.ts'

/**
 * Reads the journal of the directory and appends to it. Failures are only logged: the controller must run
 * without its journal.
 * @param path empty for none.
 */
export async function keepJournal(
  path: string,
  journal: Journal,
  logger: Logger,
): Promise<JournalFiles | undefined> {
  if (path === '') return undefined
  const files = await import('./journal-files.ts')
  try {
    return await files.JournalFiles.attach(path, journal, logger)
  } catch (error) {
    logger.error('the journal is kept in memory only; fix the directory, or set --journal-path to another', {
      directory: path,
      error,
    })
    return undefined
  }
}
