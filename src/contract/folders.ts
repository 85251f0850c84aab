import { z } from 'zod'
import { member, needs } from './access.ts'
import { knowledgeBaseErrors, knowledgeBasePath } from './content-routes.ts'
import { FolderDescription, folderDescription, folderPath } from './folder-description.ts'
import { limits } from './limits.ts'
import { route } from './route.ts'

const foldersPath = `${knowledgeBasePath}/folders` as const

const FolderDescriptions = z.object({
  items: z.array(FolderDescription).meta({ description: 'described folders, sorted by path' }),
})

export const folders = {
  list: route({
    method: 'GET',
    path: foldersPath,
    summary: 'List the described folders of a knowledge base',
    description:
      'Returns the descriptions of folders, sorted by path. A caller who may see only some documents gets only the folders that contain one of these documents.',
    access: member('read:content'),
    replies: { 200: FolderDescriptions },
    errors: [...knowledgeBaseErrors, 'policy_principal_required'],
  }),
  update: route({
    method: 'PATCH',
    path: foldersPath,
    summary: 'Describe the files of a folder',
    description:
      'Sets the description of a folder, or removes it if `description` is null. Returns all descriptions. A description applies to the documents whose `sourceFilename` is the path, or starts with the path and a slash. If several folders contain a document, that of the deepest one applies. It is embedded with the chunks of documents that are ingested from now on. For earlier documents, reindex the knowledge base afterwards; a job that is already reindexing it uses the new description. A caller who may see only some documents gets `forbidden`, because a description affects all documents of the folder.',
    access: needs('write:kb'),
    body: {
      kind: 'json',
      mode: 'strict',
      limitBytes: limits.jsonBodyBytes,
      schema: z.strictObject({ path: folderPath, description: folderDescription.nullable() }),
    },
    replies: { 200: FolderDescriptions },
    errors: [
      ...knowledgeBaseErrors,
      'policy_principal_required',
      'folder_not_described',
      'folder_limit_exceeded',
      'conflict',
    ],
    audit: 'kb.update',
  }),
}
