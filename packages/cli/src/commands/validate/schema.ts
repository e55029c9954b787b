/** What `tenon validate` prints. */
import { count, document, type JsonSchema, list, object, optional, text, words } from '@tenon/ask/schema'
import type { PrintedValidation } from './run.ts'

export const validationSchema: JsonSchema = document<PrintedValidation>(
  'ValidationReport',
  'What is wrong with manifests: tenon validate.',
  {
    files: count(),
    objects: count('that were checked'),
    skipped: count('objects of kinds that are not checked'),
    errors: count(),
    warnings: count(),
    problems: list(
      object<PrintedValidation['problems'][number]>({
        file: text(),
        line: count('from 1'),
        column: count('from 1'),
        severity: words<'error' | 'warning'>({ error: '', warning: '' }),
        object: optional(text('such as NodePool default')),
        field: text('path in the object; empty for the object as a whole'),
        message: text(),
        fix: optional(text('what to write instead')),
      }),
    ),
  },
  'none',
)
