// Generated from openapi.json by `npm run generate`. Do not edit.

export interface paths {
    "/api/v1/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The signed-in person and their workspaces. */
        get: operations["show_me"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/me/access-tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The personal tokens of the signed-in person, newest first. */
        get: operations["list_personal_tokens"];
        put?: never;
        /**
         * Creates a personal token. It acts as the person, with their role in each workspace, within its
         *     scopes.
         */
        post: operations["create_personal_token"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/me/access-tokens/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revokes a personal token. It is refused from the next request on. */
        delete: operations["revoke_personal_token"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/me/command-tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Creates a personal token for a command on the person's machine. The answer is a code, which the
         *     command redeems for the token within two minutes.
         */
        post: operations["create_command_token"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The token of this request, and what it opens. */
        get: operations["show_token"];
        put?: never;
        post?: never;
        /**
         * Revokes the token of this request. Its bearer needs no scope, so that a finder can end a leaked
         *     token.
         */
        delete: operations["revoke_token"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Creates a workspace that the signed-in person owns. */
        post: operations["create_workspace"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One workspace. */
        get: operations["show_workspace"];
        put?: never;
        post?: never;
        /**
         * Deletes a workspace: its servers, tokens and console stop at once, and after 30 days all its
         *     data is destroyed. For owners, with a sign-in of the last ten minutes; every owner gets a
         *     message.
         */
        delete: operations["delete_workspace"];
        options?: never;
        head?: never;
        /** Changes a workspace: its name, and the access to its servers. Its slug stays. */
        patch: operations["change_workspace"];
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/access-tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The tokens of a workspace, newest first. For admins and owners. */
        get: operations["list_workspace_tokens"];
        put?: never;
        /**
         * Creates a token of the workspace. It acts with its role, within its scopes, and stays when its
         *     creator leaves.
         */
        post: operations["create_workspace_token"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/access-tokens/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revokes a token of the workspace. It is refused from the next request on. */
        delete: operations["revoke_workspace_token"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/alert-rules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The built-in rules with the settings of the workspace. */
        get: operations["list_alert_rules"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/alert-rules/{rule}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Switches a rule, its mail, mutes it for a time, or sets its thresholds. */
        patch: operations["change_alert_rule"];
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/alerts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The alerts of the workspace, the newest first, with the number of those that the person has not
         *     read. For admins and owners.
         */
        get: operations["list_alerts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/alerts/{id}/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Marks one alert as read by the person. */
        post: operations["read_alert"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/alerts/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Marks every alert as read by the person. */
        post: operations["read_all_alerts"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/api-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The valid API keys, newest first: all keys of the workspace for admins and owners, otherwise the
         *     person's own.
         */
        get: operations["list_api_keys"];
        put?: never;
        /** Creates an API key, for clients that cannot do OAuth. */
        post: operations["create_api_key"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/api-keys/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revokes a key: it is refused and its streams are closed within a second. Members revoke their
         *     own keys; admins and owners any.
         */
        delete: operations["revoke_api_key"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/apps": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The apps of a workspace, last used first: all of them for admins and owners, otherwise the
         *     person's own.
         */
        get: operations["list_connected_apps"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/apps/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Disconnects an app: its tokens are refused and its streams closed within a second. */
        delete: operations["disconnect_app"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/attachments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Adds an attached server. Its tools are read when a program offers it. */
        post: operations["add_attachment"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The audit log of a workspace, newest first. For admins and owners. */
        get: operations["list_audit_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/audit/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The whole audit log as JSON Lines, newest first, one entry a line as in the list. Each line has
         *     the entry's position in the hash chain that reveals later changes (`chain`: `seq`, `previous`,
         *     `hash`, `entry`). For admins and owners.
         */
        get: operations["export_audit_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/call-views": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The saved views that the person sees, by name. */
        get: operations["list_call_views"];
        put?: never;
        /** Saves a view. */
        post: operations["save_call_view"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/call-views/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Replaces a view of the person. */
        put: operations["change_call_view"];
        post?: never;
        /** Deletes a view of the person. Administrators delete shared ones of others too. */
        delete: operations["delete_call_view"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/calls": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Calls of a workspace, newest first, without arguments and results.
         * @description With a filter, a page is searched in 200,000 calls. So it may have few items or none, and a
         *     `next_cursor` that goes on with older calls.
         */
        get: operations["list_calls"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/calls/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One call. 404 for a call that the log does not have, or has no more. */
        get: operations["show_call"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/calls/{id}/reveal": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Shows the arguments and the answer of a call, and writes an entry in the audit log. 404 if
         *     nothing is kept of the call, and for members who may not see it.
         */
        post: operations["reveal_call"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/calls/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The newest 100,000 calls that the filter wants. */
        get: operations["export_calls"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/calls/live": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * New calls that the filter wants, as server-sent events: `calls`, a list of at most 50, as the
         *     items of the list of calls, newest first. The stream ends after some 20 s, and when the caller may
         *     read it no longer; clients open it again. A person or token has 8 at once; beyond that the answer
         *     is 429 `too_many_live_views`.
         */
        get: operations["watch_calls"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/client-rule": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Sets the rule. Connections of clients that may not connect any more are refused within a second. */
        put: operations["set_client_rule"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/clients": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The rule of a workspace, with the clients that it knows. For admins and owners. */
        get: operations["show_client_admission"];
        put?: never;
        /**
         * Allows a client before its first connection: by the address of its metadata document, or by the
         *     id from its registration.
         */
        post: operations["allow_client"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/clients/{id}/askers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Rejects the requests for a client without a decision about it. People may request it again. */
        delete: operations["dismiss_askers"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/clients/{id}/decision": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Decides about a client. A client that may not connect any more is refused within a second, with
         *     all its connections in this workspace. People who requested an allowed client get a mail.
         */
        put: operations["decide_client"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/configuration": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The workspace as a file, in canonical form, or the part of it that is one object. Secrets are
         *     references to the workspace. For developers: it has documents and files. Endpoints of webhooks are
         *     in it for admins and owners, and for their tokens with `workspace:read` or `webhooks:write`.
         */
        get: operations["export_configuration"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/configuration/plans": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Computes the changes that lead from the workspace to the file, and keeps them for 30 minutes.
         *     Changes nothing.
         */
        post: operations["plan_configuration"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/configuration/plans/{id}/apply": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Applies a plan in one transaction, once. 409 with what changed if the workspace changed since
         *     the plan was made. New endpoints of webhooks, and those with other headers, must answer a signed
         *     `endpoint.verify` with 2xx before.
         */
        post: operations["apply_configuration"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/connects": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Attempts of AI clients to connect, the newest first. For admins and owners. */
        get: operations["list_connects"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/default-server": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Sets the default server: the target of the workspace's own URL while that server is published. */
        put: operations["choose_default_server"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/event-types": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The types of events that an endpoint can subscribe to. */
        get: operations["list_event_types"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/events/live": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Events of the workspace as they happen, as server-sent events. For admins and owners.
         * @description The data of each is `{"id": "evt_…", "message": {…}}`: the `webhook-id` and the body of a
         *     delivery. The first event has an id and no data. A client that connects again with
         *     `Last-Event-ID` gets every retained event after it, once. Without it and without `since` the
         *     stream begins now. It ends after some 20 s, and when the caller may read it no longer; clients
         *     open it again. It carries at most 100 events a second. A person or token has 8 at once; beyond
         *     that the answer is 429 `too_many_listeners`.
         */
        get: operations["listen_to_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/imports/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reads a document and shows the result for each operation. Stores nothing. */
        post: operations["preview_import"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/insights": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Calls, errors, durations and bytes of a period, with the period before. */
        get: operations["show_insights"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/insights/errors": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Failed calls of a period by tool, server and reason, from the log of calls (30 days). */
        get: operations["list_error_causes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/insights/people": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Calls of a period by person, from the log of calls (30 days). */
        get: operations["list_people_use"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/invitations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The pending invitations. For admins and owners. */
        get: operations["list_invitations"];
        put?: never;
        /**
         * Invites a person by mail. It requires a recent sign-in for every role, because each role can see
         *     the workspace. A newer invitation replaces the older one to the same address. The response does
         *     not reveal whether the address has an account. Owners get a message about invitations of admins
         *     and owners.
         */
        post: operations["invite"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/invitations/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Withdraws an invitation. */
        delete: operations["revoke_invitation"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/limits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The limits of a workspace, and their use. */
        get: operations["show_limits"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Changes limits of a workspace, within the platform's bounds. For admins and owners. Running
         *     calls and streams continue.
         */
        patch: operations["change_limits"];
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/mcp": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reads the workspace by tools: an MCP server for an agent with a token.
         * @description It speaks Streamable HTTP in every revision of MCP from 2025-03-26 on, without sessions and
         *     streams. A tool needs the scope of its route: `calls:read` for calls and insights,
         *     `registry:read` for the configuration.
         */
        post: operations["speak_mcp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The members of a workspace, strongest role first. */
        get: operations["list_members"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/members/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Removes a member, or leaves the workspace. The person's AI apps lose access to it within a
         *     second.
         */
        delete: operations["remove_member"];
        options?: never;
        head?: never;
        /**
         * Changes a member's role. A person cannot give a role above their own, and only owners change
         *     owners. Tokens of the member's AI apps are refused within a second. The apps get new ones by
         *     themselves, unless the new role may not call tools.
         */
        patch: operations["change_member"];
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The first page of a workspace. */
        get: operations["show_overview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/prompts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All prompts of a workspace, by name. */
        get: operations["list_prompts"];
        put?: never;
        /** Creates a prompt. */
        post: operations["create_prompt"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/prompts/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One prompt. */
        get: operations["show_prompt"];
        /** Replaces a prompt. Servers that offer it under its old name follow. */
        put: operations["rewrite_prompt"];
        post?: never;
        /** Deletes a prompt. It can be restored for 30 days. */
        delete: operations["delete_prompt"];
        options?: never;
        head?: never;
        /** Enables or disables a prompt. */
        patch: operations["switch_prompt"];
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/prompts/{id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Restores a deleted prompt. */
        post: operations["restore_prompt"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/registered-clients": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The registered clients of a workspace, by name. For admins and owners. */
        get: operations["list_registered_clients"];
        put?: never;
        /** Registers a client. It can connect to this workspace only. */
        post: operations["register_client"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/registered-clients/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Deletes a client with its secrets and connections. Its tokens are refused within a second. */
        delete: operations["delete_registered_client"];
        options?: never;
        head?: never;
        /** Changes a client, or switches it off or on. */
        patch: operations["change_registered_client"];
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/registered-clients/{id}/public-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Replaces the public keys of a client that proves itself by key. */
        put: operations["replace_client_keys"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/registered-clients/{id}/secrets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Adds a second secret, so that the first can be replaced without a pause. Put the new one into
         *     use, then revoke the old one.
         */
        post: operations["add_client_secret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/registered-clients/{id}/secrets/{secret}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revokes a secret: from now on it proves nothing. Connections stay, and refresh with the other
         *     one.
         */
        delete: operations["revoke_client_secret"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/resources": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All resources and templates of a workspace, by name. */
        get: operations["list_resources"];
        put?: never;
        /** Creates a resource or template. */
        post: operations["create_resource"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/resources/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One resource. */
        get: operations["show_resource"];
        /**
         * Replaces a resource. Servers that offer it under its old URI follow, and subscribed clients are
         *     notified.
         */
        put: operations["rewrite_resource"];
        post?: never;
        /** Deletes a resource. It can be restored for 30 days. */
        delete: operations["delete_resource"];
        options?: never;
        head?: never;
        /** Enables or disables a resource. */
        patch: operations["switch_resource"];
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/resources/{id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Restores a deleted resource. */
        post: operations["restore_resource"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restores a deleted workspace within its 30 days. For owners. Apps renew their tokens by
         *     themselves, unless they tried meanwhile.
         */
        post: operations["restore_workspace"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Everything in the workspace whose name or detail contains all words: at most eight results of a
         *     kind. A role finds what its lists show: keys of others, service accounts and AI clients are
         *     found by admins and owners only.
         */
        get: operations["search_workspace"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/security": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The workspace's rule for sign-ins. For admins. */
        get: operations["show_security"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Changes the rule. For admins, with a sign-in of the last ten minutes. A stricter rule ends
         *     access tokens at once. Apps of members who signed in without the factor have to be connected
         *     again.
         */
        patch: operations["change_security"];
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/servers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All servers of a workspace, by name. */
        get: operations["list_servers"];
        put?: never;
        /** Creates a server. It is a draft until it is published. */
        post: operations["create_server"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/servers/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One server with its items, and with problems that AI clients would have. */
        get: operations["show_server"];
        put?: never;
        post?: never;
        /** Deletes a server. It can be restored for 30 days. No other server gets its address. */
        delete: operations["delete_server"];
        options?: never;
        head?: never;
        /** Changes a server's texts. */
        patch: operations["change_server"];
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/servers/{id}/calls": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Calls through one server, newest first. */
        get: operations["list_server_calls"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/servers/{id}/capture": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The capture policy of a server. All members see it. */
        get: operations["show_capture"];
        /** Sets the capture policy of a server, for calls from now on. */
        put: operations["set_capture"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/servers/{id}/capture/content": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Deletes the arguments and answers that are kept of a server's calls. The calls stay in the log. */
        delete: operations["delete_captured"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/servers/{id}/connection": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Instructions for each client. */
        get: operations["show_connection"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/servers/{id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Pauses a server: it answers like an unknown one until it is published again. */
        post: operations["pause_server"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/servers/{id}/prompts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Replaces a server's choice of prompts. */
        put: operations["choose_prompts"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/servers/{id}/publish": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Publishes a server: from now on it answers AI clients. The first one of a workspace becomes its
         *     default server.
         */
        post: operations["publish_server"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/servers/{id}/resources": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Replaces a server's choice of resources. */
        put: operations["choose_resources"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/servers/{id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Restores a deleted server. */
        post: operations["restore_server"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/servers/{id}/saved-calls": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The saved calls of a server, by name. */
        get: operations["list_saved_calls"];
        put?: never;
        /** Saves a call. */
        post: operations["save_call"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/servers/{id}/saved-calls/{call}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Replaces a saved call. */
        put: operations["change_saved_call"];
        post?: never;
        /** Deletes a saved call. */
        delete: operations["delete_saved_call"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/servers/{id}/tools": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Replaces a server's choice of tools. */
        put: operations["choose_tools"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/servers/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Checks a choice of tools before it is saved. */
        post: operations["check_tools"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/service-accounts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The service accounts of a workspace, by name. For admins and owners. */
        get: operations["list_service_accounts"];
        put?: never;
        /** Creates a service account. It belongs to the workspace and stays when its creator leaves. */
        post: operations["create_service_account"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/service-accounts/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Deletes an account with its secrets and API keys. Its tokens and keys are refused within a
         *     second.
         */
        delete: operations["delete_service_account"];
        options?: never;
        head?: never;
        /** Renames an account, or switches it off or on. */
        patch: operations["change_service_account"];
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/service-accounts/{id}/api-access": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Gives a service account access to the management API, or changes it: the token endpoint gives
         *     the account a token of the workspace for 15 minutes. Tokens that it has for this API are refused
         *     from their next request on.
         */
        put: operations["give_api_access"];
        post?: never;
        /**
         * Takes the access to the management API away from a service account. Tokens that it has for this
         *     API are refused from their next request on; those for MCP stay.
         */
        delete: operations["take_api_access"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/service-accounts/{id}/public-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Replaces the public keys of an account that proves itself by key. Tokens that it got with the
         *     former keys are refused.
         */
        put: operations["replace_public_keys"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/service-accounts/{id}/secrets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Adds a second secret, so that the first can be replaced without a pause. Put the new one into
         *     use, then revoke the old one.
         */
        post: operations["add_account_secret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/service-accounts/{id}/secrets/{secret}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revokes a secret. Older tokens of the account are refused within a second; with its other secret
         *     it gets new ones.
         */
        delete: operations["revoke_account_secret"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The sessions of a workspace, the last used first: all of them for admins and owners, otherwise
         *     the person's own.
         */
        get: operations["list_sessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Ends a session on every node: its client gets 404, and its streams and calls end. */
        delete: operations["end_session"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/sessions/{id}/timeline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What happened in a session, the oldest first. */
        get: operations["show_session_timeline"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/single-sign-on": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The provider of the workspace and its domains. For admins. */
        get: operations["show_single_sign_on"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/single-sign-on/domains": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Adds a domain. It has an effect once its TXT record was found. */
        post: operations["add_domain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/single-sign-on/domains/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Removes a domain. Members stay; no new person joins by it. */
        delete: operations["remove_domain"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/single-sign-on/domains/{id}/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Checks the TXT record of a domain. */
        post: operations["check_domain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/single-sign-on/enforcement": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Requires the provider, or makes it one of several sign-in methods again. Apps that members
         *     connected without it are disconnected at once (AUTH-R7). API keys and service accounts continue.
         *     Owners with a passkey can still sign in without it.
         */
        put: operations["enforce_single_sign_on"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/single-sign-on/provider": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Saves the provider, and turns one that was off on again. Its metadata and keys are fetched
         *     first, so that a wrong address is not stored. Another issuer or client counts as another
         *     provider: members connect again, and the requirement has to be set again.
         */
        put: operations["set_identity_provider"];
        post?: never;
        /**
         * Removes the provider. Members who signed in with it are signed out, and use another sign-in
         *     method.
         */
        delete: operations["delete_identity_provider"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/single-sign-on/provider/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Fetches the provider's metadata and keys, and returns the path to try a sign-in. */
        post: operations["test_identity_provider"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/sources": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All sources of a workspace, by name. */
        get: operations["list_sources"];
        put?: never;
        /** Adds a source, and for an OpenAPI document its tools. */
        post: operations["create_source"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/sources/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One source. */
        get: operations["show_source"];
        put?: never;
        post?: never;
        /** Deletes a source; its tools answer no more. It can be restored for 30 days. */
        delete: operations["delete_source"];
        options?: never;
        head?: never;
        /** Changes a source's name, base URL or bounds. Another base URL takes a recent sign-in. */
        patch: operations["change_source"];
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/sources/{id}/account": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Begins to connect the workspace's account: by a sign-in at the source's authorization server, or
         *     at once by client credentials. Replacing an account requires a recent sign-in.
         */
        post: operations["connect_source"];
        /** Disconnects the workspace's account, and revokes its tokens where the server supports it. */
        delete: operations["disconnect_source"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/sources/{id}/attachment": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The state of an attached server. */
        get: operations["show_attachment"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/sources/{id}/attachment/key": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replaces the key of an attached server. Programs with the old key are disconnected within
         *     seconds.
         */
        post: operations["replace_attachment_key"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/sources/{id}/credential": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Sets a source's credential. The API never returns the secret. Replacing a credential requires a
         *     recent sign-in.
         */
        put: operations["set_credential"];
        post?: never;
        /** Deletes a source's credential. */
        delete: operations["delete_credential"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/sources/{id}/credential/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Tests the credential of a source and stores the state. An API gets `GET` requests without
         *     arguments, at most three of them with the credential. A success counts if the same request fails
         *     without the credential. An MCP server's lists are read, and nothing of them is stored.
         */
        post: operations["test_credential"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/sources/{id}/reimport": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Applies the document that was previewed. New tools are enabled; the workspace's own texts and
         *     switches stay.
         */
        post: operations["apply_reimport"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/sources/{id}/reimport/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Shows the changes of importing a document again. Stores nothing. */
        post: operations["preview_reimport"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/sources/{id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Takes a deletion back. */
        post: operations["restore_source"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/sources/{id}/sign-in": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The sign-in of a source, and the connected account. */
        get: operations["show_sign_in"];
        /**
         * Sets the sign-in of a source. Accounts stay connected, unless they were connected at another
         *     authorization server. An API's credential is deleted.
         */
        put: operations["set_sign_in"];
        post?: never;
        /**
         * Removes the OAuth sign-in of a source. The client and every account are deleted, those of
         *     persons included.
         */
        delete: operations["delete_sign_in"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/sources/{id}/sync": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Looks at an upstream server now, or takes over changes that waited. */
        post: operations["sync_upstream"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/sources/{id}/tools": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Tools of one source, by name. */
        get: operations["list_source_tools"];
        put?: never;
        /** Creates a tool from a description. The source must be of kind `http`. */
        post: operations["create_tool"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/sources/{id}/upstream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The state of a source's server, and the changes that wait to be agreed to. */
        get: operations["show_upstream"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Changes the prefix of an upstream's names, or whether its changes wait. */
        patch: operations["change_upstream"];
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/tools": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Tools of all sources, by name. */
        get: operations["list_tools"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/tools/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One tool. */
        get: operations["show_tool"];
        put?: never;
        post?: never;
        /** Deletes a tool that was described by hand. Tools of a document are disabled instead. */
        delete: operations["delete_tool"];
        options?: never;
        head?: never;
        /**
         * Changes a tool's name or texts, or enables or disables it. Servers that offer it under its old
         *     name follow.
         */
        patch: operations["change_tool"];
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/tools/{id}/definition": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Replaces the definition of a tool. */
        put: operations["redefine_tool"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/tools/{id}/try": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Calls a tool once, enabled or not. The call log records the call, without arguments and result. */
        post: operations["try_tool"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/tools/enabled": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Enables or disables many tools. */
        post: operations["switch_tools"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/trash": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Deleted sources, servers, prompts and resources that can be restored, newest deletion first. */
        get: operations["list_trash"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/trusted-pipelines": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The trusted pipelines of a workspace, the oldest first. For admins and owners. */
        get: operations["list_trusted_pipelines"];
        put?: never;
        /**
         * Trusts a pipeline: a job whose JWT meets the conditions gets a token of the workspace from the
         *     token endpoint. The issuer's metadata and keys are fetched first.
         */
        post: operations["create_trusted_pipeline"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/trusted-pipelines/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Replaces the conditions and rights of a trusted pipeline. Tokens that its jobs have are refused
         *     from their next request on. Another issuer is asked first.
         */
        put: operations["change_trusted_pipeline"];
        post?: never;
        /**
         * Deletes a trusted pipeline. Its jobs get no more tokens, and those that they have are refused
         *     from their next request on.
         */
        delete: operations["delete_trusted_pipeline"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/upstreams": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Adds an MCP server, with its tools, prompts and resources. */
        post: operations["add_upstream"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/upstreams/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Looks at an MCP server: what it is and what it offers. Keeps nothing. */
        post: operations["preview_upstream"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The endpoints of the workspace, the oldest first. For admins and owners. */
        get: operations["list_webhooks"];
        put?: never;
        /**
         * Creates an endpoint. It must answer a signed `endpoint.verify` with 2xx before it is kept. Requires
         *     a recent sign-in: events of the workspace go to its address from then on.
         */
        post: operations["create_webhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/webhooks/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One endpoint. */
        get: operations["show_webhook"];
        put?: never;
        post?: never;
        /** Deletes an endpoint with the log of its deliveries. */
        delete: operations["delete_webhook"];
        options?: never;
        head?: never;
        /** Changes the note or the events of an endpoint. */
        patch: operations["change_webhook"];
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/webhooks/{id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Deliveries of an endpoint, the newest event first. */
        get: operations["list_deliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/webhooks/{id}/deliveries/{event}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A delivery with its data and attempts. */
        get: operations["show_delivery"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/webhooks/{id}/deliveries/{event}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sends an event to an endpoint again, under the same `webhook-id`. */
        post: operations["replay_delivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/webhooks/{id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Pauses an endpoint: deliveries wait until it is resumed. */
        post: operations["pause_webhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/webhooks/{id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sends again what an endpoint missed since a time: failed deliveries, and events of its types that it
         *     has no delivery of. Delivered ones are not repeated.
         */
        post: operations["replay_since"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/webhooks/{id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resumes an endpoint that was paused or disabled. What waited goes out at once. */
        post: operations["resume_webhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/webhooks/{id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Gives an endpoint a new secret. For 24 hours deliveries carry the signatures of both, so that the
         *     receiver changes over without a gap. Requires a recent sign-in.
         */
        post: operations["rotate_webhook_secret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/webhooks/{id}/target": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Moves an endpoint to another address, with other headers. The secret stays. The new address must
         *     answer a signed `endpoint.verify` with 2xx. Requires a recent sign-in.
         */
        put: operations["move_webhook"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{ws}/webhooks/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sends a test message to an endpoint. It goes the way of every delivery. */
        post: operations["test_webhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description A token of the management API. */
        AccessToken: {
            /** Format: date-time */
            created_at: string;
            /** @description Display name of its creator, if they still have an account. */
            created_by?: string;
            /** Format: date-time */
            expires_at: string;
            /** @description Its first characters. */
            hint: string;
            /** @example tok_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
            id: string;
            /**
             * Format: date-time
             * @description Time of the last use, to five minutes.
             */
            last_used_at?: string;
            /** @description Display name. */
            name: string;
            /**
             * @description The role of a workspace token; absent for a personal token, which has the role of its
             *     person.
             */
            role?: components["schemas"]["Role"];
            /** @description Its permissions. */
            scopes: components["schemas"]["ApiScope"][];
            /** @description Slug of the one workspace that it opens; absent if it opens all workspaces of its person. */
            workspace?: string;
        };
        /**
         * @description How an account proves itself.
         * @enum {string}
         */
        AccountAuth: "client_secret" | "private_key_jwt";
        /** @description A change of a service account. */
        AccountChange: {
            /** @description False switches it off: its tokens and keys are refused within a second. */
            enabled?: boolean | null;
            /** @description Display name. */
            name?: string | null;
        };
        /** @description An attached server that was added. */
        AddedAttachment: {
            key: components["schemas"]["AttachmentKey"];
            source: components["schemas"]["Source"];
        };
        /** @description The effect of a change. */
        AdmissionChanged: {
            /** @description Connections that ended, because their client may not connect any more. */
            ended: number;
        };
        /**
         * @description A decision about a client.
         * @enum {string}
         */
        AdmissionDecision: "allowed" | "blocked";
        /**
         * @description The clients that may connect.
         * @enum {string}
         */
        AdmissionRule: "any" | "verified" | "list" | "approval";
        /** @description An alert. */
        Alert: {
            /**
             * Format: int32
             * @description Events of it.
             */
            count: number;
            /** Format: date-time */
            fired_at: string;
            id: string;
            /** Format: date-time */
            last_at: string;
            /** @description Path of the console below the workspace. */
            page: string;
            /** Format: date-time */
            resolved_at?: string;
            /** @description Name of the rule. */
            rule: string;
            severity: components["schemas"]["AlertSeverity"];
            state: components["schemas"]["AlertState"];
            /** @description Id of the item that it concerns. */
            subject: string;
            /** @description The alert as a sentence. */
            text: string;
            /** @description Whether the person has not read it since it notified. */
            unread: boolean;
        };
        /** @description A page of alerts. */
        AlertPage: {
            /** @description The alerts, the newest first. */
            items: components["schemas"]["Alert"][];
            next_cursor?: string;
            /**
             * Format: int64
             * @description Alerts that the person has not read, on all pages.
             */
            unread: number;
        };
        /** @description A change of a rule; absent members stay. */
        AlertRuleChange: {
            /**
             * Format: int32
             * @description Days before the end of a credential.
             */
            days?: number | null;
            /** @description Whether it makes alerts. Standing alerts of a rule that is switched off end. */
            enabled?: boolean;
            /** @description Whether admins and owners get mail. */
            mail?: boolean;
            /**
             * Format: int32
             * @description Fewer calls fire nothing.
             */
            min_calls?: number | null;
            /**
             * Format: int32
             * @description The last minutes whose calls count.
             */
            minutes?: number | null;
            /**
             * Format: int64
             * @description No mail and no messages for so many hours, 1 to 2160; `null` ends it.
             */
            mute_hours?: number | null;
            /**
             * Format: int32
             * @description Percent of failed calls, or of a limit, from which on the rule fires; `null` = the default, as
             *     for the other thresholds. Each rule has its own thresholds and their bounds.
             */
            percent?: number | null;
        };
        /** @description The present count of a rule over calls: `part` of `whole`. */
        AlertRuleCount: {
            /** @description Name of the server, or `Calls in a minute`. */
            name: string;
            /** @description Path of the console below the workspace, for what was counted. */
            page: string;
            /**
             * Format: int64
             * @description Failed calls, or calls of the busiest one of the last minutes.
             */
            part: number;
            /**
             * Format: int64
             * @description Calls of the minutes of the rule, or the limit.
             */
            whole: number;
        };
        /** @description The rules. */
        AlertRules: {
            items: components["schemas"]["AlertRuleView"][];
        };
        /** @description A built-in rule with its settings. */
        AlertRuleView: {
            /**
             * @description The present counts of a rule over calls: at most five servers with the greatest shares of
             *     failed calls, or the use of the limit. Empty for other rules.
             */
            counts: components["schemas"]["AlertRuleCount"][];
            /** @description Its occasion, as a sentence. */
            description: string;
            /** @description Whether it makes alerts. */
            enabled: boolean;
            /** @description Whether admins and owners get mail. */
            mail: boolean;
            /**
             * Format: date-time
             * @description No mail and no messages until then.
             */
            muted_until?: string;
            /** @description Its name. */
            name: string;
            severity: components["schemas"]["AlertSeverity"];
            /** @description The numbers of the rule that the workspace may set. */
            thresholds: components["schemas"]["AlertThreshold"][];
            /** @description For people. */
            title: string;
        };
        /**
         * @description How much an alert matters.
         * @enum {string}
         */
        AlertSeverity: "info" | "warning" | "critical";
        /**
         * @description Whether an alert stands.
         * @enum {string}
         */
        AlertState: "firing" | "resolved";
        /** @description A number of a rule that the workspace may set. */
        AlertThreshold: {
            /**
             * Format: int32
             * @description The value of a workspace that set none.
             */
            default: number;
            /**
             * Format: int32
             * @description The greatest value that can be set.
             */
            maximum: number;
            /**
             * Format: int32
             * @description The least value that can be set.
             */
            minimum: number;
            name: components["schemas"]["AlertThresholdName"];
            /**
             * Format: int32
             * @description The workspace's own value; null = the default applies.
             */
            own: number | null;
            /**
             * Format: int32
             * @description The effective value.
             */
            value: number;
        };
        /**
         * @description The name of a threshold.
         * @enum {string}
         */
        AlertThresholdName: "percent" | "minutes" | "min_calls" | "days";
        /** @description A client that the workspace does not know yet. */
        AllowBody: {
            /** @description Its `client_id`: the address of its metadata document, or the id from its registration. */
            client_id: string;
        };
        /** @description The tokens of the management API that a service account gets. */
        ApiAccess: {
            /**
             * Format: date-time
             * @description Time of the last change.
             */
            changed_at: string;
            /**
             * Format: date-time
             * @description Time of the last token since then.
             */
            last_used_at?: string;
            /** @description The role of a token. */
            role: components["schemas"]["Role"];
            /** @description The permissions of a token. */
            scopes: components["schemas"]["ApiScope"][];
        };
        /** @description An API key. */
        ApiKey: {
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            expires_at: string;
            /** @description Its first characters. */
            hint: string;
            /** @description The subject that it authenticates: a person (`usr_…`) or a service account (`svc_…`). */
            holder: string;
            /** @description Display name of the holder. */
            holder_name: string;
            /** @example key_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
            id: string;
            /**
             * Format: date-time
             * @description Time of the last use, to five minutes.
             */
            last_used_at?: string;
            /** @description Display name. */
            name: string;
            /** @description Networks from which it may be used, as CIDR blocks. Empty means everywhere. */
            networks: string[];
            /** @description URL of the one server that it opens; absent if it opens the whole workspace. */
            resource?: string;
        };
        /**
         * @description A scope of a token.
         * @enum {string}
         */
        ApiScope: "workspace:read" | "workspace:write" | "webhooks:write" | "registry:read" | "registry:write" | "credentials:write" | "access:read" | "access:write" | "calls:read" | "tools:call" | "audit:read";
        /** @description The result of an application. */
        AppliedConfiguration: {
            /** @description The changes of the plan. */
            changes: components["schemas"]["ConfigurationChange"][];
            /** @description Number of objects without a change that the file begins to own. */
            claimed: number;
        };
        /** @description Facts about an application. */
        ApplyRequest: {
            /** @description Facts for the audit log, such as `commit` and `run`: up to 20, each of up to 200 characters. */
            meta?: {
                [key: string]: string;
            };
        };
        /** @description A fault of the arguments. */
        ArgumentFault: {
            message: string;
            /** @description JSON pointer into the arguments; empty for the whole. */
            path: string;
        };
        /** @description The state of an attached server. */
        Attachment: {
            /** @description Address for the first argument of `portolan attach`. */
            address: string;
            /**
             * Format: date-time
             * @description When the key was made.
             */
            key_created_at: string;
            /** @description The beginning of its key. */
            key_hint: string;
            /** @description Its name. */
            name: string;
            /** @description The programs that offer it at the moment; empty while it is away. */
            programs: components["schemas"]["AttachmentProgram"][];
        };
        /** @description A key that was made. It is shown this once. */
        AttachmentKey: {
            /** @description Address for the first argument of `portolan attach`. */
            address: string;
            /** @description The key, for the environment variable `PORTOLAN_ATTACH_KEY`. */
            key: string;
        };
        /** @description A program that offers the server. */
        AttachmentProgram: {
            /** @description Connections to nodes. */
            connections: number;
            /** @description Its last failure. */
            error?: string | null;
            /** @description The server behind it takes requests. */
            is_ready: boolean;
            /**
             * Format: date-time
             * @description When its oldest connection was opened.
             */
            since: string;
            /** @description Its version. */
            version: string;
        };
        /** @description The actor of an entry. */
        AuditActor: {
            /**
             * @description `user`, `access_token` of the workspace, which `detail.access_token` names,
             *     `service_account`, which `detail.service_account` names, `anonymous`, `system`, or `operator`
             *     of the installation, whom `detail.operator` names.
             */
            kind: string;
            /** @description The person, for `user`. */
            user_id?: string;
        };
        /** @description An entry of the audit log. */
        AuditEvent: {
            /**
             * @description The action, as `noun.verb`: `source.created`.
             * @example source.created
             */
            action: string;
            actor: components["schemas"]["AuditActor"];
            /** Format: date-time */
            at: string;
            /** @description Details, which depend on the action. */
            detail: Record<string, unknown>;
            id: string;
            /** @description `ok` or `refused`. */
            outcome: string;
            target_id: string;
            target_kind: string;
        };
        /** @description A body that is not empty. */
        BodyView: {
            /** @description Size of the whole body in bytes. */
            bytes: number;
            /** @description The first 64 KiB; absent if the body is no text. */
            text?: string;
        };
        /** @description All that is known of a call, without arguments and result. */
        CallDetail: {
            /** Format: date-time */
            at: string;
            /**
             * Format: int64
             * @description Bytes of the parameters.
             */
            bytes_in: number;
            /**
             * Format: int64
             * @description Bytes of the answer.
             */
            bytes_out: number;
            /** @description `person`, `service`, `api_key`, `console` or `unknown`. */
            caller: string;
            /** @description OAuth client, as it names itself on the wire. */
            client_id?: string;
            client_name?: string;
            client_version?: string;
            /**
             * Format: date-time
             * @description Until when its arguments and answer are kept. Absent if nothing is kept, and for members who
             *     may not see it.
             */
            content_until?: string;
            /** @description `session`, `stateless`, `console` or `unknown`. */
            era: string;
            /** @description What went wrong, in words of this service. */
            error?: string;
            id: string;
            /** @description The node that made the call. */
            node?: string;
            outcome: string;
            /** @description Revision of MCP. */
            revision?: string;
            server_id?: string;
            /** @description Absent for the try page. */
            server_slug?: string;
            /** @description Name of the session. It opens nothing. */
            session?: string;
            /**
             * Format: int32
             * @description HTTP status of the API.
             */
            status?: number;
            timing: components["schemas"]["CallTiming"];
            tool_name: string;
            /** @description Trace id, 32 hexadecimal digits. */
            trace_id?: string;
            user_id?: string;
            /** @description Absent for a person who is no longer a member. */
            user_name?: string;
            /**
             * Format: int32
             * @description How many calls the entry stands for: more than 1 in a sample.
             */
            weight: number;
        };
        /** @description A call, without arguments and result. */
        CallLog: {
            /** Format: date-time */
            at: string;
            /** @description Name of the AI client. */
            client_name?: string;
            /** Format: int64 */
            duration_ms: number;
            id: string;
            outcome: components["schemas"]["CallOutcome"];
            /** @description Absent for the try page. */
            server_slug?: string;
            /**
             * Format: int32
             * @description HTTP status of the API.
             */
            status?: number;
            tool_name: string;
            /** @description Absent for a person who is no longer a member. */
            user_name?: string;
            /**
             * Format: int32
             * @description How many calls the entry stands for: more than 1 in a sample. Counts are exact.
             */
            weight: number;
        };
        /**
         * @description How a call ended.
         * @enum {string}
         */
        CallOutcome: "ok" | "tool_error" | "invalid_arguments" | "upstream_error" | "internal";
        /** @description Calls of the last 24 hours. */
        CallStatistics: {
            /** @description Oldest first, the present hour last, empty hours too. */
            by_hour: components["schemas"]["HourOfCalls"][];
            /**
             * Format: int64
             * @description Calls that failed: at the API, on the way to it, or here.
             */
            errors: number;
            /**
             * Format: int64
             * @description Calls that were rejected for their arguments: nothing was sent.
             */
            rejected: number;
            /** Format: int64 */
            total: number;
        };
        /** @description Where the time of a call went, in microseconds. Zero where it was not measured. */
        CallTiming: {
            /**
             * Format: int64
             * @description At the API or upstream server.
             */
            backend_us: number;
            /**
             * Format: int64
             * @description The rest of the work here.
             */
            own_us: number;
            /**
             * Format: int64
             * @description The work in all: `backend_us` and `own_us`.
             */
            took_us: number;
            /**
             * Format: int64
             * @description Before the work: limits and queues.
             */
            wait_us: number;
        };
        /** @description A saved view. */
        CallView: {
            /** @description Values by filter, as the address of the page has them. */
            filter: {
                [key: string]: string;
            };
            id: string;
            /** @description The person of this request saved it. */
            is_own: boolean;
            /** @description All members see it. */
            is_shared: boolean;
            name: string;
        };
        /** @description A kept text: JSON, unless it was cut. */
        CapturedText: {
            /**
             * Format: int64
             * @description Bytes on the wire.
             */
            bytes: number;
            /** @description The text is a part. */
            is_cut: boolean;
            /**
             * Format: int32
             * @description Places that were masked before the text was kept.
             */
            masked: number;
            /** @description Up to 64 KiB. `••••` stands for secrets and personal data. */
            text: string;
        };
        /**
         * @description The calls whose content is kept.
         * @enum {string}
         */
        CapturePolicyName: "metadata" | "errors" | "sample" | "all";
        /** @description A tool that changes. */
        ChangedTool: {
            /** @description The changes as sentences. */
            changes: string[];
            key: string;
            tool_name: string;
        };
        /** @description A prompt of a server. */
        ChosenPrompt: {
            prompt_id: string;
            /** @description Its name for clients; the prompt's own name if absent. */
            published_name?: string;
        };
        /** @description A resource of a server. */
        ChosenResource: {
            /**
             * @description Its URI or template for clients; the resource's own if absent. A template keeps its
             *     variables.
             */
            published_uri?: string;
            resource_id: string;
        };
        /** @description A tool of a server. */
        ChosenTool: {
            /** @description Its name for clients; the tool's own name if absent. */
            published_name?: string;
            tool_id: string;
        };
        /** @description The rule with all known clients. */
        ClientAdmission: {
            /** @description The known clients; requested ones first. */
            clients: components["schemas"]["SeenClient"][];
            /** @description The connections that each rule would end at once. */
            effects: components["schemas"]["RuleEffect"][];
            /** @description The clients that may connect. */
            rule: components["schemas"]["AdmissionRule"];
        };
        /** @description A person who requests a client. */
        ClientAsker: {
            /** Format: date-time */
            asked_at: string;
            user_email: string;
            user_id: string;
            user_name: string;
        };
        /**
         * @description How an OAuth client sends its secret.
         * @enum {string}
         */
        ClientAuth: "basic" | "post";
        /** @description A change of a client. */
        ClientChange: {
            /** @description False switches it off: its connections are refused within a second. */
            enabled?: boolean | null;
            /** @description Display name. */
            name?: string | null;
            /** @description Its redirect URIs. */
            redirect_uris?: string[] | null;
        };
        /** @description Instructions for one client. */
        ClientConnection: {
            client: components["schemas"]["ClientName"];
            /** @description A link that opens the client with all fields filled in. */
            deep_link?: string;
            label: string;
            /** @description Language of the snippet: `text`, `shell`, `json`, `toml`, `typescript` or `python`. */
            language: string;
            /** @description A note before the first step, for instance that the client cannot reach this address. */
            note?: string;
            /** @description The text to paste. */
            snippet: string;
            /** @description The steps, in order. */
            steps: string[];
        };
        /**
         * @description Clients with instructions.
         * @enum {string}
         */
        ClientName: "claude" | "claude_code" | "chatgpt" | "cursor" | "vscode" | "inspector" | "mcp_remote" | "codex" | "gemini_cli" | "windsurf" | "zed" | "typescript_sdk" | "python_sdk" | "curl";
        /**
         * @description How a client proves itself.
         * @enum {string}
         */
        ClientProof: "none" | "client_secret" | "private_key_jwt";
        /** @description The visible part of a secret. */
        ClientSecret: {
            /** Format: date-time */
            created_at: string;
            /** @description Its first characters. */
            hint: string;
            id: string;
            /**
             * Format: date-time
             * @description Time when it last proved the account.
             */
            last_used_at?: string;
        };
        /** @description A limit that a server exceeds. */
        ClientWarning: {
            /** @description The client; "All clients" if it concerns each. */
            client: string;
            /** @description The effect there, and the remedy. */
            message: string;
        };
        /** @description The code by which a command gets its token. */
        CommandCode: {
            /** @description To be redeemed once, with the command's secret. */
            code: string;
            /**
             * Format: date-time
             * @description It is valid until then.
             */
            expires_at: string;
        };
        /** @description A change of one object. */
        ConfigurationChange: {
            /** @description Its fields that change. A deletion has none. */
            fields: components["schemas"]["ConfigurationFieldChange"][];
            /** @description Its key. */
            key: string;
            /** @description Its kind. */
            kind: components["schemas"]["ConfigurationObjectKind"];
            /** @description What becomes of it. */
            op: components["schemas"]["ConfigurationOperation"];
        };
        /** @description A change of one field. */
        ConfigurationFieldChange: {
            /** @description The value after; absent if there is none. */
            after?: unknown;
            /** @description The value before; absent if there was none. Long texts are cut. */
            before?: unknown;
            /** @description Its path in the object. */
            path: string;
        };
        /**
         * @description Kinds of objects.
         * @enum {string}
         */
        ConfigurationObjectKind: "source" | "prompt" | "resource" | "server" | "webhook";
        /**
         * @description What becomes of an object.
         * @enum {string}
         */
        ConfigurationOperation: "create" | "update" | "delete";
        /** @description Changes of a workspace that can be applied once. */
        ConfigurationPlan: {
            /**
             * Format: int64
             * @description Revision of the workspace that the changes hold for.
             */
            base_revision: number;
            /** @description By kind and key. Empty if the workspace is as the file says. */
            changes: components["schemas"]["ConfigurationChange"][];
            /** @description Number of objects without a change that the file begins to own. */
            claimed: number;
            /**
             * Format: date-time
             * @description The plan can be applied until then.
             */
            expires_at: string;
            /** @example pln_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
            id: string;
        };
        /** @description The next address of the browser. */
        ConnectAnswer: {
            /**
             * @description The authorization server's page, valid for this browser and ten minutes. Null if the account
             *     is connected already.
             */
            url?: string | null;
        };
        /** @description One attempt of a client to connect. */
        ConnectAttempt: {
            /** Format: date-time */
            began_at: string;
            /** @description Its `client_id`. */
            client_id?: string;
            /** @description The client's own name, which is not verified. */
            client_name?: string;
            /** Format: date-time */
            ended_at: string;
            /** @description Id that stays the same while the attempt continues. */
            id: string;
            /** @description Known faults of clients that match. */
            known: components["schemas"]["KnownClientFault"][];
            /** @description The last step that it reached. */
            reached: components["schemas"]["ConnectStep"];
            /** @description The one server that it requested. */
            server?: string;
            state: components["schemas"]["ConnectState"];
            /** @description Its steps, in order. */
            steps: components["schemas"]["ConnectEvent"][];
            /** @description The person who decided, if they are a member. */
            user_id?: string;
            user_name?: string;
        };
        /** @description An app that may act for a person in this workspace. */
        ConnectedApp: {
            /** @description The app's `client_id`: the address of its document, or an id that this service assigned. */
            client_id: string;
            /** Format: date-time */
            created_at: string;
            /**
             * Format: date-time
             * @description Time when it expires.
             */
            expires_at: string;
            /** @description Id of the person's grant. */
            id: string;
            /**
             * Format: date-time
             * @description Time of its last request to a server, to the minute.
             */
            last_used_at?: string | null;
            /** @description The app's own name, which is not verified. */
            name: string;
            /**
             * Format: int32
             * @description Number of token refreshes.
             */
            refreshes: number;
            /**
             * Format: date-time
             * @description Last time when another network than before repeated a refresh of its token.
             */
            repeated_elsewhere_at?: string | null;
            /** @description The address of the server, or of all of them. */
            resource: string;
            /** @description The granted scopes. */
            scopes: string[];
            user_email: string;
            /** @description The person for whom it acts. */
            user_id: string;
            user_name: string;
        };
        /** @description The record of one step. */
        ConnectEvent: {
            /** @description Its `User-Agent`. */
            agent?: string;
            /** Format: date-time */
            at: string;
            /** @description The error text that the client or its user received. */
            fault?: string;
            /**
             * Format: date-time
             * @description Time of the last repetition.
             */
            last_at?: string;
            /** @description Network of the requester. */
            network?: string;
            outcome: components["schemas"]["ConnectOutcome"];
            /**
             * Format: int32
             * @description Number of identical repetitions, if there were any: a refresh that is refused.
             */
            repeats?: number;
            /** @description Id of the request, as error pages show it. */
            request_id?: string;
            /** @description The id of the rule that decided. */
            rule?: string;
            /** @description The text of that rule. */
            rule_says?: string;
            /** @description Its parameters: redirect URI, scope, resource, PKCE method. Never a secret. */
            sent: Record<string, unknown>;
            step: components["schemas"]["ConnectStep"];
        };
        /** @description Instructions for one server. */
        Connection: {
            clients: components["schemas"]["ClientConnection"][];
            /** @description The same with the workspace's own URL, if it leads to this server. */
            short?: components["schemas"]["ShortConnection"];
            /** @description The server's URL. */
            url: string;
        };
        /**
         * @description The result of a step.
         * @enum {string}
         */
        ConnectOutcome: "ok" | "waiting" | "refused" | "failed";
        /**
         * @description The state of an attempt.
         * @enum {string}
         */
        ConnectState: "connected" | "waiting" | "refused" | "failed" | "stopped";
        /**
         * @description A step of a connection.
         * @enum {string}
         */
        ConnectStep: "challenge" | "resource_metadata" | "server_metadata" | "register" | "client_document" | "authorize" | "sign_in" | "consent" | "token" | "refresh" | "request";
        /** @description A content block of MCP. */
        ContentBlock: {
            /** @description The text. */
            text: string;
            /** @enum {string} */
            type: "text";
        } | {
            /** @description Base64. */
            data: string;
            /** @description Media type. */
            mimeType: string;
            /** @enum {string} */
            type: "image";
        } | {
            /** @description Base64. */
            data: string;
            /** @description Media type. */
            mimeType: string;
            /** @enum {string} */
            type: "audio";
        } | {
            /** @description The resource. */
            resource: components["schemas"]["EmbeddedResource"];
            /** @enum {string} */
            type: "resource";
        };
        /** @description A token that was just created. */
        CreatedAccessToken: {
            /** @description The secret, shown only once: send it as `Authorization: Bearer`. */
            secret: string;
            /** @description The token as lists show it. */
            token: components["schemas"]["AccessToken"];
        };
        /** @description A service account that was just created. */
        CreatedAccount: {
            /** @description The account. */
            account: components["schemas"]["ServiceAccount"];
            /** @description Its secret, shown only once; absent if it proves itself by key. */
            client_secret?: string;
            /** @description The address of the token endpoint. */
            token_endpoint: string;
        };
        /** @description A key that was just created. */
        CreatedApiKey: {
            /** @description The key as lists show it. */
            key: components["schemas"]["ApiKey"];
            /** @description The secret, shown only once. */
            secret: string;
        };
        /** @description A client that was just created. */
        CreatedClient: {
            /** @description The client. */
            client: components["schemas"]["RegisteredClient"];
            /** @description Its secret, shown only once; absent if it has none. */
            client_secret?: string;
        };
        /** @description A new credential. */
        Credential: {
            /** @description The place of the key in a request. */
            in: components["schemas"]["KeyPlace"];
            /** @enum {string} */
            kind: "api_key";
            /** @description Name of the header, query parameter or cookie. */
            name: string;
            /** @description The key. */
            value: string;
        } | {
            /** @enum {string} */
            kind: "bearer";
            /** @description The token. */
            token: string;
        } | {
            /** @enum {string} */
            kind: "basic";
            /** @description Password. */
            password: string;
            /** @description User name. */
            username: string;
        } | {
            /** @description Up to 20. */
            headers: components["schemas"]["CredentialHeader"][];
            /** @enum {string} */
            kind: "headers";
        } | {
            /** @description How the client sends its secret; `basic` if absent. */
            auth?: components["schemas"]["ClientAuth"];
            /** @description Client id. */
            client_id: string;
            /** @description Client secret. */
            client_secret: string;
            /** @enum {string} */
            kind: "oauth_client_credentials";
            /** @description Scopes, separated by spaces. */
            scope?: string;
            /** @description Token endpoint. */
            token_url: string;
        };
        /** @description A header of a credential. */
        CredentialHeader: {
            /** @description Name. */
            name: string;
            /** @description Secret value. */
            value: string;
        };
        /**
         * @description Kinds of credentials.
         * @enum {string}
         */
        CredentialKind: "api_key" | "bearer" | "basic" | "headers" | "oauth_client_credentials";
        /** @description The state of a credential after the last request that carried it. */
        CredentialState: {
            /** @enum {string} */
            state: "never_tried";
        } | {
            /**
             * Format: date-time
             * @description When.
             */
            at: string;
            /** @enum {string} */
            state: "works";
        } | {
            /**
             * Format: date-time
             * @description When.
             */
            at: string;
            /** @enum {string} */
            state: "refused";
            /**
             * Format: int32
             * @description HTTP status.
             */
            status: number;
        } | {
            /**
             * Format: date-time
             * @description When.
             */
            at: string;
            /** @description Why, as a sentence. */
            reason: string;
            /** @enum {string} */
            state: "inconclusive";
        };
        /** @description The visible part of a credential. */
        CredentialSummary: {
            /**
             * @description Enough to recognise it, too little to use it.
             * @example X-Api-Key: ••••cafe
             */
            hint: string;
            kind: components["schemas"]["CredentialKind"];
            /** @description Whether the API accepts it. */
            state: components["schemas"]["CredentialState"];
            /** Format: date-time */
            updated_at: string;
        };
        /** @description The result of a test. */
        CredentialTest: {
            /** @description The credential with its state. */
            credential: components["schemas"]["CredentialSummary"];
            /** @description The tool whose answer decided; absent if none did. */
            tool?: components["schemas"]["TestedTool"];
        };
        /** @description The parameters of a test. */
        CredentialTestRequest: {
            /** @description A `GET` tool of the source that can be called without arguments. Absent: the first ones. */
            tool?: string;
        };
        /** @description A decision about a client. */
        DecisionBody: {
            decision?: components["schemas"]["AdmissionDecision"] | null;
        };
        /** @description The choice of the default server. */
        DefaultServer: {
            /** @description Null means none: the workspace's own URL then answers as for an unknown server. */
            server_id: string | null;
        };
        /** @description The response to a deletion. */
        Deleted: {
            /**
             * Format: date-time
             * @description End of the time in which it can be restored.
             */
            undo_until: string;
        };
        /** @description How much was deleted. */
        DeletedContent: {
            /**
             * Format: int64
             * @description Calls whose arguments and answers were deleted.
             */
            calls: number;
        };
        /**
         * @description The kind of a deleted item.
         * @enum {string}
         */
        DeletedKind: "source" | "server" | "prompt" | "resource";
        /** @description A deleted item. `POST …/{kind}s/{id}/restore` restores it. */
        DeletedThing: {
            /** Format: date-time */
            deleted_at: string;
            id: string;
            kind: components["schemas"]["DeletedKind"];
            name: string;
            /**
             * Format: date-time
             * @description Time when it is removed permanently.
             */
            restorable_until: string;
        };
        /**
         * @description Where a delivery stands.
         * @enum {string}
         */
        DeliveryState: "pending" | "delivered" | "failed";
        /** @description Where the demo API is, for the console to propose. */
        DemoApi: {
            /** @description The key itself, for the header that its document names. It is public, and guards invented data. */
            api_key: string;
            /** @description Where its calls go. */
            base_url: string;
            /** @description The same as an MCP server, which needs no credential. */
            mcp_url: string;
            /** @description Its OpenAPI document. */
            openapi_url: string;
            /** @description Its title. */
            title: string;
        };
        /** @description An OpenAPI document, as text or by its address. */
        DocumentInput: {
            /** @enum {string} */
            kind: "text";
            /** @description The document. */
            text: string;
        } | {
            /** @enum {string} */
            kind: "url";
            /** @description http(s) address of the document. */
            url: string;
        };
        /**
         * @description Calls longer than half of `upto_us` and not longer than `upto_us`. The shortest bucket is
         *     everything up to 1 µs, the longest everything from 9.5 hours.
         */
        DurationBucket: {
            /** Format: int64 */
            calls: number;
            /**
             * Format: int64
             * @description Microseconds, a power of two.
             */
            upto_us: number;
        };
        /** @description Bytes in a result. */
        EmbeddedResource: {
            /** @description Base64. */
            blob: string;
            mimeType: string;
            uri: string;
        };
        /** @description A change of whether a prompt or resource can be published. */
        EnabledChange: {
            enabled: boolean;
        };
        /** @description Whether members must use the provider. */
        Enforcement: {
            enforced: boolean;
        };
        /** @description A client that the authorization server's operator registered for the workspace. */
        EnteredClient: {
            /** @description How its secret is sent. If absent, the server's metadata decides, or `basic`. */
            auth?: components["schemas"]["ClientAuth"];
            client_id: string;
            /** @description Its secret, if it has one. */
            client_secret?: string;
            /** @description Its private key in PEM, for servers that know it by its public key. */
            private_key?: string;
        };
        /**
         * @description The authorization server of an API: its issuer, whose metadata has the rest (RFC 8414, OpenID
         *     Connect), or its addresses.
         */
        EnteredServer: {
            /** @description The authorization endpoint. */
            authorization_endpoint?: string;
            issuer?: string;
            /** @description The revocation endpoint, if there is one. */
            revocation_endpoint?: string;
            /** @description The token endpoint. */
            token_endpoint?: string;
        };
        /** @description The body of a refusal: problem details (RFC 9457 §3.1), with one member more (API-12). */
        ErrorAnswer: {
            /** @description The same text as `error.message`. */
            detail: string;
            error: components["schemas"]["ErrorBody"];
            /**
             * Format: int32
             * @description The status.
             */
            status: number;
            /** @description The words of the status. */
            title: string;
            /**
             * @description `urn:portolan:problem:` and `error.code`.
             * @example urn:portolan:problem:not_found
             */
            type: string;
        };
        /** @description The refusal itself. */
        ErrorBody: {
            /** @description For programs: `slug_taken`, `not_found`. */
            code: string;
            /** @description Details that depend on `code`. */
            details?: Record<string, unknown>;
            /** @description The member of the request that is at fault, as a dotted path. */
            field?: string;
            /** @description For people: the fault and the remedy. */
            message: string;
        };
        /** @description Failures of a tool for one reason. */
        ErrorCause: {
            /**
             * Format: int64
             * @description Calls in the period. Estimated where the log has a sample.
             */
            calls: number;
            /** @description The reason, in words of this service. */
            error?: string;
            /**
             * Format: date-time
             * @description The first one in the log, also before the period.
             */
            first_at: string;
            /**
             * Format: date-time
             * @description The last one.
             */
            last_at: string;
            /** @description `tool_error`, `invalid_arguments`, `upstream_error` or `internal`. */
            outcome: string;
            /** @description Absent for the try page. */
            server_slug?: string;
            /**
             * Format: int32
             * @description HTTP status of the API.
             */
            status?: number;
            tool_name: string;
        };
        /** @description Failures by cause. */
        ErrorCauses: {
            /** @description Most calls first, at most 100. */
            items: components["schemas"]["ErrorCause"][];
            /**
             * Format: date-time
             * @description Only failures from then on were read: the log has more than 20,000. Absent if all were read.
             */
            since?: string;
        };
        /** @description A type of events. */
        EventTypeView: {
            /** @description Its name. */
            name: string;
            /** @description Its JSON Schema. */
            schema: string;
            /** @description Its occasion, as a sentence. */
            summary: string;
        };
        /**
         * @description Which redirects of the API are followed.
         * @enum {string}
         */
        FollowRedirects: "none" | "same_origin";
        /** @description The body of a tool that is described by hand. */
        HandMadeBody: {
            /** @example application/json */
            content_type: string;
            required?: boolean;
            /** @description JSON Schema. */
            schema: Record<string, unknown>;
        };
        /** @description A parameter of a tool that is described by hand. */
        HandMadeParameter: {
            description?: string;
            in: components["schemas"]["ParameterPlace"];
            /** @description Its name in the request. */
            name: string;
            /** @description Always true for path parameters. */
            required?: boolean;
            /** @description JSON Schema. */
            schema: Record<string, unknown>;
        };
        /** @description A tool that is described by hand. */
        HandMadeTool: {
            body?: components["schemas"]["HandMadeBody"];
            /** @description Its function. The model chooses tools by this text. */
            description: string;
            /** @description Enabled if absent. Not part of the stored definition. */
            enabled?: boolean;
            /**
             * @description HTTP method.
             * @example GET
             */
            method: string;
            /** @description 1 to 64 letters, digits, `_` or `-`. */
            name: string;
            parameters?: components["schemas"]["HandMadeParameter"][];
            /**
             * @description Path below the source's base URL, with parameters in braces.
             * @example /pets/{id}
             */
            path: string;
            /** @description Display name. */
            title?: string;
        };
        /** @description A header. */
        HeaderLine: {
            name: string;
            value: string;
        };
        /** @description Calls of one hour. */
        HourOfCalls: {
            /** Format: int64 */
            calls: number;
            /**
             * Format: int64
             * @description Calls that failed.
             */
            errors: number;
            /**
             * Format: date-time
             * @description Its beginning.
             */
            hour: string;
            /**
             * Format: int64
             * @description Calls that were rejected for their arguments.
             */
            rejected: number;
        };
        /** @description A provider. */
        IdentityProvider: {
            /** @description The redirect URI to enter at the provider. */
            callback_url: string;
            client_id: string;
            /** @description True if members must sign in this way. */
            enforced: boolean;
            /** @description True if a secret is stored. The API never returns it. */
            has_secret: boolean;
            issuer: string;
            name: string;
            /** @description True if an operator turned it off. It admits no sign-in until it is saved again. */
            turned_off: boolean;
        };
        /** @description A document before it is stored. */
        ImportPreview: {
            /** @description The server that the import would use. */
            base_url?: string;
            description?: string;
            /** @description SHA-256 of the document, hexadecimal. */
            digest: string;
            operations: components["schemas"]["OperationPreview"][];
            problems: components["schemas"]["Problem"][];
            security: components["schemas"]["SecurityHint"][];
            servers: components["schemas"]["ServerChoiceView"][];
            /** @description OpenAPI version as written. */
            spec_version: string;
            title: string;
            version: string;
        };
        /** @description What happened in a period. */
        Insights: {
            /** @description The same in the period before. */
            before: components["schemas"]["Measured"];
            clients: components["schemas"]["InsightsRow"][];
            /** Format: date-time */
            from: string;
            outcomes: components["schemas"]["InsightsRow"][];
            servers: components["schemas"]["InsightsRow"][];
            /**
             * Format: int64
             * @description Seconds of a step.
             */
            step_seconds: number;
            /** @description Oldest first, empty steps too. */
            steps: components["schemas"]["InsightsStep"][];
            /** Format: date-time */
            to: string;
            /** @description Most calls first, at most 100. */
            tools: components["schemas"]["InsightsRow"][];
            total: components["schemas"]["Measured"];
        };
        /** @description One tool, server, client or outcome. */
        InsightsRow: components["schemas"]["Measured"] & {
            /**
             * Format: int64
             * @description Calls in the period before.
             */
            calls_before: number;
            /**
             * @description Its name; empty for calls of the console, which have no server, and of clients without a
             *     name.
             */
            name: string;
        };
        /** @description One step of the period. */
        InsightsStep: components["schemas"]["Measured"] & {
            /**
             * Format: date-time
             * @description Its beginning.
             */
            at: string;
            /** @description Calls by duration, shortest first, without empty buckets. */
            durations: components["schemas"]["DurationBucket"][];
        };
        /** @description A pending invitation. */
        Invitation: {
            /** Format: date-time */
            created_at: string;
            /** @description The invited address. */
            email: string;
            /**
             * Format: date-time
             * @description Time when it expires.
             */
            expires_at: string;
            id: string;
            /** @description The person who invited. */
            invited_by: string;
            /** @description The role after acceptance. */
            role: components["schemas"]["Role"];
        };
        /**
         * @description The place of an API key in a request.
         * @enum {string}
         */
        KeyPlace: "header" | "query" | "cookie";
        /** @description A known fault of a client. */
        KnownClientFault: {
            /** @description The client with the fault. */
            client: string;
            /** @description Address of a description. */
            source: string;
            /** @description The effect, and the remedy. */
            text: string;
        };
        /** @description One limit. */
        Limit: {
            /**
             * Format: int32
             * @description The platform's default; null = no limit.
             */
            default: number | null;
            /**
             * Format: int64
             * @description Present use over all nodes, some seconds old. Null for limits per minute, and if it is
             *     unknown.
             */
            in_use: number | null;
            /**
             * Format: int32
             * @description The greatest value that can be set.
             */
            maximum: number;
            /**
             * Format: int32
             * @description The least value that can be set.
             */
            minimum: number;
            name: components["schemas"]["LimitName"];
            /**
             * Format: int32
             * @description The workspace's own value; null = the default applies.
             */
            own: number | null;
            /**
             * Format: int64
             * @description Requests that it refused in the time of `usage`.
             */
            refused: number;
            unit: components["schemas"]["LimitUnit"];
            /**
             * Format: int32
             * @description The effective value; null = no limit.
             */
            value: number | null;
        };
        /**
         * @description The name of a limit.
         * @enum {string}
         */
        LimitName: "tenant_calls" | "client_requests" | "tool_calls" | "running_calls" | "open_streams" | "stream_opens" | "session_streams" | "listens" | "parked_calls" | "tasks";
        /** @description The limits of a workspace, and their effects. */
        Limits: {
            /** @description One for each name, always in the same order. */
            limits: components["schemas"]["Limit"][];
            usage: components["schemas"]["LimitUsage"];
        };
        /** @description A change of limits. Absent = leave, null = back to the platform's default. */
        LimitsChange: {
            /**
             * Format: int32
             * @description Requests of one person with one AI client per minute.
             */
            client_requests?: number | null;
            /**
             * Format: int32
             * @description Concurrent `subscriptions/listen` streams of one person with one AI client.
             */
            listens?: number | null;
            /**
             * Format: int32
             * @description Concurrent event streams.
             */
            open_streams?: number | null;
            /**
             * Format: int32
             * @description Concurrent calls of one person with one AI client that wait for its answer.
             */
            parked_calls?: number | null;
            /**
             * Format: int32
             * @description Concurrent calls.
             */
            running_calls?: number | null;
            /**
             * Format: int32
             * @description Concurrent event streams of one session.
             */
            session_streams?: number | null;
            /**
             * Format: int32
             * @description New event streams of one person with one AI client per minute.
             */
            stream_opens?: number | null;
            /**
             * Format: int32
             * @description Stored tasks of one person with one AI client on one server.
             */
            tasks?: number | null;
            /**
             * Format: int32
             * @description Calls of the whole workspace per minute.
             */
            tenant_calls?: number | null;
            /**
             * Format: int32
             * @description Calls of one tool per minute.
             */
            tool_calls?: number | null;
        };
        /**
         * @description The unit of a limit.
         * @enum {string}
         */
        LimitUnit: "per_minute" | "at_once";
        /** @description Use in the last six hours. */
        LimitUsage: {
            /** Format: int64 */
            bucket_minutes: number;
            /** @description Oldest first, the present one last, empty ones included. */
            buckets: components["schemas"]["UsageBucket"][];
            /**
             * Format: date-time
             * @description Beginning of the first bucket.
             */
            from: string;
        };
        /** @description One page of a list. */
        Listing_AccessToken: {
            /** @description In the order of the list. */
            items: {
                /** Format: date-time */
                created_at: string;
                /** @description Display name of its creator, if they still have an account. */
                created_by?: string;
                /** Format: date-time */
                expires_at: string;
                /** @description Its first characters. */
                hint: string;
                /** @example tok_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
                id: string;
                /**
                 * Format: date-time
                 * @description Time of the last use, to five minutes.
                 */
                last_used_at?: string;
                /** @description Display name. */
                name: string;
                /**
                 * @description The role of a workspace token; absent for a personal token, which has the role of its
                 *     person.
                 */
                role?: components["schemas"]["Role"];
                /** @description Its permissions. */
                scopes: components["schemas"]["ApiScope"][];
                /** @description Slug of the one workspace that it opens; absent if it opens all workspaces of its person. */
                workspace?: string;
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_ApiKey: {
            /** @description In the order of the list. */
            items: {
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                expires_at: string;
                /** @description Its first characters. */
                hint: string;
                /** @description The subject that it authenticates: a person (`usr_…`) or a service account (`svc_…`). */
                holder: string;
                /** @description Display name of the holder. */
                holder_name: string;
                /** @example key_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
                id: string;
                /**
                 * Format: date-time
                 * @description Time of the last use, to five minutes.
                 */
                last_used_at?: string;
                /** @description Display name. */
                name: string;
                /** @description Networks from which it may be used, as CIDR blocks. Empty means everywhere. */
                networks: string[];
                /** @description URL of the one server that it opens; absent if it opens the whole workspace. */
                resource?: string;
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_AuditEvent: {
            /** @description In the order of the list. */
            items: {
                /**
                 * @description The action, as `noun.verb`: `source.created`.
                 * @example source.created
                 */
                action: string;
                actor: components["schemas"]["AuditActor"];
                /** Format: date-time */
                at: string;
                /** @description Details, which depend on the action. */
                detail: Record<string, unknown>;
                id: string;
                /** @description `ok` or `refused`. */
                outcome: string;
                target_id: string;
                target_kind: string;
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_CallLog: {
            /** @description In the order of the list. */
            items: {
                /** Format: date-time */
                at: string;
                /** @description Name of the AI client. */
                client_name?: string;
                /** Format: int64 */
                duration_ms: number;
                id: string;
                outcome: components["schemas"]["CallOutcome"];
                /** @description Absent for the try page. */
                server_slug?: string;
                /**
                 * Format: int32
                 * @description HTTP status of the API.
                 */
                status?: number;
                tool_name: string;
                /** @description Absent for a person who is no longer a member. */
                user_name?: string;
                /**
                 * Format: int32
                 * @description How many calls the entry stands for: more than 1 in a sample. Counts are exact.
                 */
                weight: number;
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_CallView: {
            /** @description In the order of the list. */
            items: {
                /** @description Values by filter, as the address of the page has them. */
                filter: {
                    [key: string]: string;
                };
                id: string;
                /** @description The person of this request saved it. */
                is_own: boolean;
                /** @description All members see it. */
                is_shared: boolean;
                name: string;
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_ConnectAttempt: {
            /** @description In the order of the list. */
            items: {
                /** Format: date-time */
                began_at: string;
                /** @description Its `client_id`. */
                client_id?: string;
                /** @description The client's own name, which is not verified. */
                client_name?: string;
                /** Format: date-time */
                ended_at: string;
                /** @description Id that stays the same while the attempt continues. */
                id: string;
                /** @description Known faults of clients that match. */
                known: components["schemas"]["KnownClientFault"][];
                /** @description The last step that it reached. */
                reached: components["schemas"]["ConnectStep"];
                /** @description The one server that it requested. */
                server?: string;
                state: components["schemas"]["ConnectState"];
                /** @description Its steps, in order. */
                steps: components["schemas"]["ConnectEvent"][];
                /** @description The person who decided, if they are a member. */
                user_id?: string;
                user_name?: string;
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_ConnectedApp: {
            /** @description In the order of the list. */
            items: {
                /** @description The app's `client_id`: the address of its document, or an id that this service assigned. */
                client_id: string;
                /** Format: date-time */
                created_at: string;
                /**
                 * Format: date-time
                 * @description Time when it expires.
                 */
                expires_at: string;
                /** @description Id of the person's grant. */
                id: string;
                /**
                 * Format: date-time
                 * @description Time of its last request to a server, to the minute.
                 */
                last_used_at?: string | null;
                /** @description The app's own name, which is not verified. */
                name: string;
                /**
                 * Format: int32
                 * @description Number of token refreshes.
                 */
                refreshes: number;
                /**
                 * Format: date-time
                 * @description Last time when another network than before repeated a refresh of its token.
                 */
                repeated_elsewhere_at?: string | null;
                /** @description The address of the server, or of all of them. */
                resource: string;
                /** @description The granted scopes. */
                scopes: string[];
                user_email: string;
                /** @description The person for whom it acts. */
                user_id: string;
                user_name: string;
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_DeletedThing: {
            /** @description In the order of the list. */
            items: {
                /** Format: date-time */
                deleted_at: string;
                id: string;
                kind: components["schemas"]["DeletedKind"];
                name: string;
                /**
                 * Format: date-time
                 * @description Time when it is removed permanently.
                 */
                restorable_until: string;
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_EventTypeView: {
            /** @description In the order of the list. */
            items: {
                /** @description Its name. */
                name: string;
                /** @description Its JSON Schema. */
                schema: string;
                /** @description Its occasion, as a sentence. */
                summary: string;
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_Invitation: {
            /** @description In the order of the list. */
            items: {
                /** Format: date-time */
                created_at: string;
                /** @description The invited address. */
                email: string;
                /**
                 * Format: date-time
                 * @description Time when it expires.
                 */
                expires_at: string;
                id: string;
                /** @description The person who invited. */
                invited_by: string;
                /** @description The role after acceptance. */
                role: components["schemas"]["Role"];
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_Member: {
            /** @description In the order of the list. */
            items: {
                /** @description The person's own display name. */
                display_name: string;
                /** @description Primary address. */
                email: string;
                /** @description Role. */
                role: components["schemas"]["Role"];
                /**
                 * Format: date-time
                 * @description Beginning of the membership.
                 */
                since: string;
                /**
                 * @description The person.
                 * @example usr_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a
                 */
                user_id: string;
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_PromptSummary: {
            /** @description In the order of the list. */
            items: {
                arguments: components["schemas"]["PromptArgument"][];
                description: string;
                enabled: boolean;
                /** @example prm_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
                id: string;
                /**
                 * @description Name of the file that owns it, by configuration as code: the next application of that file
                 *     overwrites other changes. Absent if none does.
                 */
                managed_by?: string;
                /** @description Its name for AI clients, unless a server publishes it under another. */
                name: string;
                /** @description The upstream server that has it; absent if it was written here. */
                source_name?: string;
                state: components["schemas"]["ToolState"];
                title: string;
                /** Format: date-time */
                updated_at: string;
                /** @description Slugs of the servers that offer it. */
                used_by_servers: string[];
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_RegisteredClient: {
            /** @description In the order of the list. */
            items: {
                /**
                 * Format: int64
                 * @description Number of its present connections.
                 */
                apps: number;
                /** @description The `client_id` that is typed into the program. */
                client_id: string;
                /** Format: date-time */
                created_at: string;
                /** @description False while it is switched off. */
                enabled: boolean;
                /**
                 * @description Internal id of the client.
                 * @example cli_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a
                 */
                id: string;
                /** @description Its public keys. */
                jwks?: Record<string, unknown>;
                /** @description The address of its public keys. */
                jwks_uri?: string;
                /**
                 * Format: date-time
                 * @description Time when a person last allowed it to connect.
                 */
                last_used_at?: string;
                /** @description Display name. */
                name: string;
                /** @description How it proves itself. */
                proof: components["schemas"]["ClientProof"];
                /** @description Its redirect URIs. */
                redirect_uris: string[];
                /** @description Its secrets, oldest first. */
                secrets: components["schemas"]["ClientSecret"][];
                /** @description Blocked by the operator of this installation. */
                stopped: boolean;
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_ResourceSummary: {
            /** @description In the order of the list. */
            items: {
                body: components["schemas"]["ResourceBody"];
                description: string;
                enabled: boolean;
                /** @example rsc_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
                id: string;
                /**
                 * @description Name of the file that owns it, by configuration as code: the next application of that file
                 *     overwrites other changes. Absent if none does.
                 */
                managed_by?: string;
                mime_type?: string;
                name: string;
                shape: components["schemas"]["ResourceShape"];
                /**
                 * Format: int32
                 * @description Bytes of a text or file.
                 */
                size?: number;
                /** @description The HTTP source that answers, or the upstream server that has it. */
                source_name?: string;
                state: components["schemas"]["ToolState"];
                title: string;
                /** Format: date-time */
                updated_at: string;
                /** @description URI, or URI template, for AI clients, unless a server publishes it under another. */
                uri: string;
                /** @description Slugs of the servers that offer it. */
                used_by_servers: string[];
                /** @description Variables of a template. */
                variables: components["schemas"]["PromptArgument"][];
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_SavedCall: {
            /** @description In the order of the list. */
            items: {
                /** Format: date-time */
                changed_at: string;
                expect: components["schemas"]["SavedExpectations"];
                /** @example cal_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
                id: string;
                method: components["schemas"]["SavedMethod"];
                name: string;
                /** @description Parameters, as a client sends them. */
                params: {
                    [key: string]: unknown;
                };
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_SearchResult: {
            /** @description In the order of the list. */
            items: {
                /** @description Distinguishes things of equal name: a path, a URI, an address. */
                detail: string;
                /** @description Id within its kind. A credential has the id of its source. */
                id: string;
                kind: components["schemas"]["SearchKind"];
                name: string;
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_Server: {
            /** @description In the order of the list. */
            items: {
                /** Format: date-time */
                created_at: string;
                description?: string;
                /** @example srv_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
                id: string;
                /** @description Instructions for models. */
                instructions?: string;
                /**
                 * @description Name of the file that owns it, by configuration as code: the next application of that file
                 *     overwrites other changes. Absent if none does.
                 */
                managed_by?: string;
                name: string;
                /** Format: date-time */
                published_at?: string;
                /** @description Its segment of the URL. */
                slug: string;
                status: components["schemas"]["ServerStatus"];
                /**
                 * Format: int64
                 * @description Number of tools that clients see.
                 */
                tool_count: number;
                /** Format: date-time */
                updated_at: string;
                /** @description The URL that people enter in their AI client. */
                url: string;
                /** @description The workspace's own URL, if this server is the default one. */
                workspace_url?: string;
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_ServiceAccount: {
            /** @description In the order of the list. */
            items: {
                /** @description Its access to the management API; absent if it has none. */
                api_access?: components["schemas"]["ApiAccess"];
                /** @description How it proves itself. */
                auth: components["schemas"]["AccountAuth"];
                /** Format: date-time */
                created_at: string;
                /** @description The person who created it, if they still have an account. */
                created_by?: string;
                /** @description False while it is switched off. */
                enabled: boolean;
                /**
                 * @description Its id, which is also its `client_id`.
                 * @example svc_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a
                 */
                id: string;
                /** @description Its public keys. */
                jwks?: Record<string, unknown>;
                /** @description The address of its public keys. */
                jwks_uri?: string;
                /**
                 * Format: date-time
                 * @description Time of its last token.
                 */
                last_used_at?: string;
                /** @description Display name. */
                name: string;
                /** @description URL of the one server that it may use; absent if it may use the whole workspace. */
                resource?: string;
                /** @description Its secrets, oldest first; none if it proves itself by key. */
                secrets: components["schemas"]["ClientSecret"][];
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_Source: {
            /** @description In the order of the list. */
            items: {
                /** @description Prefix of every call. */
                base_url: string;
                /** Format: date-time */
                created_at: string;
                credential?: components["schemas"]["CredentialSummary"] | null;
                /** @description SHA-256, hexadecimal. */
                document_digest?: string;
                document_url?: string;
                /** Format: int64 */
                enabled_tool_count: number;
                /** @example src_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
                id: string;
                kind: components["schemas"]["SourceKind"];
                /**
                 * @description Name of the file that owns it, by configuration as code: the next application of that file
                 *     overwrites other changes. Absent if none does.
                 */
                managed_by?: string;
                name: string;
                security: components["schemas"]["SecurityHint"][];
                settings: components["schemas"]["SourceSettings"];
                /** @description Whose connected accounts open it instead; absent if it is not signed in to. */
                sign_in?: components["schemas"]["Sharing"];
                spec_title?: string;
                spec_version?: string;
                /** Format: int64 */
                tool_count: number;
                /** Format: date-time */
                updated_at: string;
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_ToolSummary: {
            /** @description In the order of the list. */
            items: {
                annotations: components["schemas"]["ToolAnnotations"];
                /** @description True if the workspace set its own name, title or description. */
                customised: boolean;
                description: string;
                enabled: boolean;
                /** @example tol_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
                id: string;
                method: string;
                /** @description Its name for AI clients, unless a server publishes it under another. */
                name: string;
                path: string;
                source_id: string;
                source_name: string;
                state: components["schemas"]["ToolState"];
                title: string;
                /** @description Slugs of the servers that offer it. */
                used_by_servers: string[];
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_TrustedPipeline: {
            /** @description In the order of the list. */
            items: {
                /** @description `aud` of the JWT. */
                audience: string;
                /** @description Further claims that the JWT must have, with their values. */
                claims: {
                    [key: string]: string;
                };
                /** Format: date-time */
                created_at: string;
                /** @example pip_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
                id: string;
                /** @description `iss` of the JWT. */
                issuer: string;
                /**
                 * Format: date-time
                 * @description Time of the last token.
                 */
                last_used_at?: string;
                /**
                 * Format: int32
                 * @description Minutes until a token expires.
                 */
                minutes: number;
                /** @description Display name, which is also the name of its tokens. */
                name: string;
                /** @description Refused jobs since the last change, the newest first: one entry for each reason. */
                refusals: components["schemas"]["PipelineRefusal"][];
                /** @description The role of a token. */
                role: components["schemas"]["Role"];
                /** @description The permissions of a token. */
                scopes: components["schemas"]["ApiScope"][];
                /** @description Pattern of `sub`. */
                subject: string;
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_Webhook: {
            /** @description In the order of the list. */
            items: {
                /** Format: date-time */
                created_at: string;
                /** @description A note for people. */
                description: string;
                /** @description Why it is disabled: `failing` or `gone`. */
                disabled_reason?: string;
                /** @description Types of the events that it subscribes to. */
                events: string[];
                /**
                 * Format: date-time
                 * @description First failure since the last success.
                 */
                failing_since?: string;
                /** @description The form of its messages. */
                format: components["schemas"]["WebhookFormat"];
                /** @description Names of its own headers. Their values are not shown. */
                header_names: string[];
                /** @example whk_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
                id: string;
                /** @description Name of the file of configuration that owns it. */
                managed_by?: string;
                /**
                 * Format: date-time
                 * @description Until then the previous secret signs too.
                 */
                previous_secret_until?: string;
                /** @description Whether it takes deliveries. */
                state: components["schemas"]["WebhookStanding"];
                /** @description Where it is; of a Slack endpoint the origin alone, because the path is a secret. */
                url: string;
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description One page of a list. */
        Listing_WebhookDelivery: {
            /** @description In the order of the list. */
            items: {
                /**
                 * Format: date-time
                 * @description When it happened.
                 */
                at: string;
                /**
                 * Format: int32
                 * @description Attempts so far.
                 */
                attempts: number;
                /** @description The event, and the `webhook-id` of every attempt. */
                event: string;
                /**
                 * Format: date-time
                 * @description The next attempt.
                 */
                next_at?: string;
                /** @description Where the delivery stands. */
                state: components["schemas"]["DeliveryState"];
                /**
                 * Format: int32
                 * @description HTTP status of the last attempt.
                 */
                status?: number;
                /** @description Type of the event. */
                type: string;
            }[];
            /** @description Send it as `cursor` to get the next page; absent on the last one. */
            next_cursor?: string;
        };
        /** @description The signed-in person. */
        Me: {
            /** @description The API that runs beside a development server, for a first import. */
            demo_api?: components["schemas"]["DemoApi"];
            /** @description The page of a development server that shows mail. */
            dev_mailbox_url?: string;
            /**
             * @description Workspaces of the person that are stopped now: suspended, or deleted less than 30 days ago.
             *     Absent if there are none.
             */
            stopped_workspaces?: components["schemas"]["StoppedWorkspace"][];
            user: components["schemas"]["Person"];
            /** @description Workspaces of the person, by name. */
            workspaces: components["schemas"]["MyWorkspace"][];
        };
        /** @description Sums and durations of calls. */
        Measured: {
            /**
             * Format: int64
             * @description Bytes of parameters.
             */
            bytes_in: number;
            /**
             * Format: int64
             * @description Bytes of answers.
             */
            bytes_out: number;
            /** Format: int64 */
            calls: number;
            /**
             * Format: int64
             * @description Calls that failed: at the API, on the way to it, or here.
             */
            errors: number;
            /**
             * Format: double
             * @description Milliseconds below which half of the calls took. Absent without a measured call.
             */
            p50_ms?: number;
            /** Format: double */
            p95_ms?: number;
            /** Format: double */
            p99_ms?: number;
            /**
             * Format: int64
             * @description Calls that were rejected for their arguments: nothing was sent.
             */
            rejected: number;
            /**
             * Format: int64
             * @description Tokens of answers, estimated: a quarter of the bytes. An answer that has its content as text
             *     and as structure counts with both.
             */
            tokens_out: number;
        };
        /** @description A member. */
        Member: {
            /** @description The person's own display name. */
            display_name: string;
            /** @description Primary address. */
            email: string;
            /** @description Role. */
            role: components["schemas"]["Role"];
            /**
             * Format: date-time
             * @description Beginning of the membership.
             */
            since: string;
            /**
             * @description The person.
             * @example usr_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a
             */
            user_id: string;
        };
        /** @description A change of a member. */
        MemberChange: {
            /** @description Role. */
            role: components["schemas"]["Role"];
        };
        /** @description A workspace in the person's own list. */
        MyWorkspace: {
            /** @example ten_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
            id: string;
            name: string;
            role: components["schemas"]["Role"];
            /** @example acme */
            slug: string;
        };
        /** @description A new service account. */
        NewAccountBody: {
            /** @description How it proves itself. */
            auth: components["schemas"]["AccountAuth"];
            /** @description Its public keys as a JWK set, for `private_key_jwt`. */
            jwks?: Record<string, unknown> | null;
            /** @description Or the address of its public keys: `https`, without query. */
            jwks_uri?: string | null;
            /** @description Display name: 1 to 80 characters. */
            name: string;
            /** @description The one server that it may use; absent for the whole workspace. */
            server_id?: string | null;
        };
        /** @description Access to the management API to give. */
        NewApiAccess: {
            /** @description The role of a token: `admin` at most, and no stronger one than the person's own. */
            role: components["schemas"]["Role"];
            /** @description The permissions of a token: at least one. */
            scopes: components["schemas"]["ApiScope"][];
        };
        /** @description A new API key. */
        NewApiKeyBody: {
            /**
             * Format: int64
             * @description Days until it expires: 1 to 366, 90 if absent.
             */
            days?: number | null;
            /** @description Display name: 1 to 80 characters. */
            name: string;
            /** @description Networks from which it may be used: addresses or CIDR blocks. Empty means everywhere. */
            networks?: string[];
            /** @description The one server that it opens; absent for the whole workspace. */
            server_id?: string | null;
            /** @description The service account that it authenticates; absent for the person. Admins and owners only. */
            service_account_id?: string | null;
        };
        /** @description An attached server to be added. */
        NewAttachment: {
            /**
             * @description Changes at the server wait until a person agrees. They do if this is absent.
             * @default true
             */
            hold_changes: boolean;
            /**
             * @description Its name in the workspace: lower-case letters, digits and hyphens. It stands in messages to
             *     callers.
             */
            name: string;
            /** @description Stands before the names of its tools and prompts; mostly empty. */
            prefix?: string;
            /** @description What people call it; the name if empty. */
            title?: string;
        };
        /** @description A view to save. */
        NewCallViewBody: {
            /** @description Values by filter: `tool`, `server`, `client`, `user`, `outcome`, `era`, `dur`, `from`, `to`. */
            filter: {
                [key: string]: string;
            };
            /** @description All members see it. Developers may share. */
            is_shared: boolean;
            /** @description Unique for the person. */
            name: string;
        };
        /** @description A new client. */
        NewClientBody: {
            /** @description Its public keys as a JWK set, for `private_key_jwt`. */
            jwks?: Record<string, unknown> | null;
            /** @description Or the address of its public keys: `https`, without query. */
            jwks_uri?: string | null;
            /** @description Display name, also on the consent page: 1 to 80 characters. */
            name: string;
            /** @description How it proves itself. */
            proof: components["schemas"]["ClientProof"];
            /** @description Its redirect URIs: 1 to 20 addresses. */
            redirect_uris: string[];
        };
        /** @description A token that a command asks for. */
        NewCommandToken: {
            /** @description The base64url form of the SHA-256 of the command's secret (RFC 7636 §4.2, S256). */
            code_challenge: string;
            /**
             * Format: int32
             * @description Days until it expires: 1 to 365.
             */
            days: number;
            /** @description Display name: 1 to 80 characters. */
            name: string;
            /** @description Address of the page, to which a confirmation of the identity leads back. */
            page: string;
            /** @description Its permissions: at least one. */
            scopes: components["schemas"]["ApiScope"][];
            /** @description Slug of the one workspace that it opens; absent for all workspaces of the person. */
            workspace?: string | null;
        };
        /** @description A new domain. */
        NewDomain: {
            /** @description The part of addresses behind the @. */
            domain: string;
        };
        /** @description A new invitation. */
        NewInvitationBody: {
            /** @description Address. */
            email: string;
            /** @description Role, no stronger than that of the inviter. */
            role: components["schemas"]["Role"];
        };
        /** @description A new personal token. */
        NewPersonalToken: {
            /**
             * Format: int64
             * @description Days until it expires: 1 to 365.
             */
            days: number;
            /** @description Display name: 1 to 80 characters. */
            name: string;
            /** @description Its permissions: at least one. */
            scopes: components["schemas"]["ApiScope"][];
            /** @description Slug of the one workspace that it opens; absent for all workspaces of the person. */
            workspace?: string | null;
        };
        /** @description A call to save. */
        NewSavedCallBody: {
            expect: components["schemas"]["SavedExpectations"];
            method: components["schemas"]["SavedMethod"];
            /** @description Unique for the server. */
            name: string;
            params: {
                [key: string]: unknown;
            };
        };
        /** @description A secret that was just created. It is shown only once. */
        NewSecret: {
            /** @description The secret itself. */
            client_secret: string;
            /** @description The secret as lists show it. */
            secret: components["schemas"]["ClientSecret"];
        };
        /** @description A new server. */
        NewServer: {
            /** @description Description for people. */
            description?: string;
            /** @description Instructions for models: the purpose of the server. */
            instructions?: string;
            /** @description Display name. */
            name: string;
            /**
             * @description Its segment of the URL, which never changes.
             * @example petstore
             */
            slug: string;
            /** @description Its tools, under their own names. */
            tool_ids?: string[];
        };
        /** @description A source to be made. */
        NewSource: {
            /** @description Instead of the document's first server. */
            base_url?: string | null;
            /** @description The document. */
            input: components["schemas"]["DocumentInput"];
            /** @enum {string} */
            kind: "openapi";
            /** @description What people call it. */
            name: string;
            /** @description Keys of the operations whose tools are enabled; all if absent. The others are kept disabled. */
            operations?: string[] | null;
        } | {
            /** @description Prefix of every call. */
            base_url: string;
            /** @enum {string} */
            kind: "http";
            /** @description What people call it. */
            name: string;
        };
        /** @description A server to be added. */
        NewUpstream: {
            credential?: components["schemas"]["Credential"] | null;
            /**
             * @description Changes at the server wait until a person agrees. It does if this is absent: what a server says of a tool is read by
             *     models, and was agreed to as it was.
             * @default true
             */
            hold_changes: boolean;
            /** @description What people call it; what it calls itself if empty. */
            name?: string;
            /** @description Stands before the names of its tools and prompts; mostly empty. */
            prefix?: string;
            /** @description The server is signed in to by OAuth, with these accounts. Its tools are read once the account is connected. */
            sign_in?: components["schemas"]["Sharing"];
            /** @description Names of the tools that are enabled; all if absent. The others are kept disabled. */
            tools?: string[] | null;
            /** @description Address of its MCP endpoint. */
            url: string;
        };
        /** @description A new endpoint. */
        NewWebhook: {
            /** @description A note for people: up to 200 characters. */
            description?: string;
            /** @description Types of the events that it subscribes to. */
            events: string[];
            /** @description The form of its messages; `standard` if absent. */
            format?: components["schemas"]["WebhookFormat"];
            /** @description Headers of its own: up to 10. */
            headers?: components["schemas"]["WebhookHeader"][];
            /** @description Where it is: an `https` URL of a public address. */
            url: string;
        };
        /** @description A new workspace. */
        NewWorkspace: {
            /** @description Display name: 1 to 80 characters. */
            name: string;
            /**
             * @description Its name in URLs, which never changes: 3 to 40 of a–z, 0–9 and hyphens.
             * @example acme
             */
            slug: string;
        };
        /** @description A new token of a workspace. */
        NewWorkspaceToken: {
            /**
             * Format: int64
             * @description Days until it expires: 1 to 365.
             */
            days: number;
            /** @description Display name: 1 to 80 characters. */
            name: string;
            /** @description The role with which it acts: `admin` at most, and no stronger one than the person's own. */
            role: components["schemas"]["Role"];
            /** @description Its permissions: at least one. */
            scopes: components["schemas"]["ApiScope"][];
        };
        /** @description A session, or a client of 2026-07-28 on one server. */
        OpenSession: {
            /** Format: date-time */
            began_at: string;
            /** Format: int64 */
            calls: number;
            client_id: string;
            /** @description The client's own name, which is not verified. */
            client_name?: string | null;
            client_version?: string | null;
            /** @description Names the session here; it opens nothing. */
            id: string;
            /** @description False for a client of 2026-07-28, which has no session to end. */
            is_session: boolean;
            /** Format: date-time */
            last_at: string;
            /** @description Nodes that know it, the one of the last request first. */
            nodes: string[];
            /** Format: int64 */
            requests: number;
            /** @description The revision of MCP. */
            revision: string;
            server_id: string;
            /** @description Null if the server was deleted. */
            server_name?: string | null;
            /**
             * Format: int32
             * @description Open event streams.
             */
            streams: number;
            /** @description The person or service account. */
            subject: string;
            user_email?: string | null;
            /** @description The person's name; null for a service account. */
            user_name?: string | null;
        };
        /** @description The sessions of a workspace. */
        OpenSessions: {
            items: components["schemas"]["OpenSession"][];
            /** @description Nodes that did not reply in time: their sessions may be missing. */
            silent_nodes: number;
        };
        /** @description The result for an operation. */
        OperationPreview: {
            deprecated: boolean;
            description: string;
            destructive: boolean;
            /**
             * @description METHOD and path.
             * @example GET /pets/{id}
             */
            key: string;
            method: string;
            path: string;
            read_only: boolean;
            /** @description The reason why it is left out. */
            reason?: string;
            status: components["schemas"]["OperationStatus"];
            tags: string[];
            title: string;
            tool_name?: string;
            warnings: string[];
        };
        /**
         * @description Whether an operation becomes a tool.
         * @enum {string}
         */
        OperationStatus: "tool" | "left_out";
        /** @description Name, title and description as imported. */
        OriginalWording: {
            description: string;
            name: string;
            title: string;
        };
        /** @description The first page of a workspace. */
        Overview: {
            calls_24h: components["schemas"]["CallStatistics"];
            /** @description Newest first. */
            recent_calls: components["schemas"]["CallLog"][];
            /** @description Credentials that APIs refused when they were last used. */
            refused_credentials: components["schemas"]["RefusedCredential"][];
            /**
             * Format: int64
             * @description Servers that answer.
             */
            servers_published: number;
            setup: components["schemas"]["Setup"];
            /** Format: int64 */
            sources: number;
            /**
             * Format: int64
             * @description Tools that can be published.
             */
            tools_enabled: number;
        };
        /** @description A person's own account at a source. */
        OwnAccount: {
            /** @description The page where this person, and no other, connects it. */
            connect_url: string;
            /** @description `ok` or `needs_sign_in`; null if none is connected. */
            status?: string | null;
        };
        /**
         * @description The place of a parameter in a request.
         * @enum {string}
         */
        ParameterPlace: "path" | "query" | "header" | "cookie";
        /** @description Changes that wait for approval. */
        PendingChanges: {
            /** @description The changes. */
            changes: components["schemas"]["UpstreamChange"][];
            /** @description Send it back to agree to these very changes. */
            digest: string;
            /**
             * Format: date-time
             * @description When they were found.
             */
            found_at: string;
        };
        /** @description Calls by person. */
        PeopleUse: {
            /** @description Most calls first, at most 100. */
            items: components["schemas"]["PersonUse"][];
            /**
             * Format: date-time
             * @description Only calls from then on were read: the log has more than 50,000 in the period. Absent if
             *     all were read.
             */
            since?: string;
        };
        /** @description A person. */
        Person: {
            display_name: string;
            email: string;
            /** @example usr_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
            id: string;
        };
        /** @description Calls of one person, or of all callers of a kind that are no people. */
        PersonUse: {
            /** @description Of callers that are no people: `service`, `api_key`, `console` or `unknown`. */
            caller?: string;
            /**
             * Format: int64
             * @description Estimated where the log has a sample.
             */
            calls: number;
            /**
             * Format: int64
             * @description Calls that failed: at the API, on the way to it, or here.
             */
            errors: number;
            /**
             * Format: date-time
             * @description The last call.
             */
            last_at: string;
            /**
             * Format: int64
             * @description Calls that were rejected for their arguments: nothing was sent.
             */
            rejected: number;
            /**
             * Format: int64
             * @description Tokens of answers, estimated: a quarter of the bytes.
             */
            tokens_out: number;
            /** @description Absent for callers that are no people. */
            user_id?: string;
            /** @description Absent for a person who is no longer a member. */
            user_name?: string;
        };
        /** @description Refused jobs of a trusted pipeline, for one reason. */
        PipelineRefusal: {
            /** Format: date-time */
            last_at: string;
            /** @description The reason as a sentence. */
            message: string;
            reason: components["schemas"]["PipelineRefusalReason"];
            /** @description The claim of the last job that does not fit; absent if its signature was not verified. */
            seen?: string;
            /**
             * Format: int64
             * @description Number of jobs.
             */
            times: number;
        };
        /**
         * @description Why jobs were refused.
         * @enum {string}
         */
        PipelineRefusalReason: "issuer" | "form" | "key" | "signature" | "time" | "audience" | "subject" | "claim" | "replay";
        /** @description A trusted pipeline to save. */
        PipelineTrust: {
            /** @description `aud` of the JWT: 1 to 255 characters. Absent for the address of this installation. */
            audience?: string;
            /** @description Further claims that the JWT must have, with their exact values: at most 10. */
            claims?: {
                [key: string]: string;
            };
            /**
             * @description `iss` of the JWT, as the issuer writes it, such as
             *     `https://token.actions.githubusercontent.com`. Its OpenID metadata and keys are fetched.
             */
            issuer: string;
            /**
             * Format: int32
             * @description Minutes until a token expires: 1 to 60, and 15 if it is absent.
             */
            minutes?: number;
            /** @description Display name: 1 to 80 characters. */
            name: string;
            /**
             * @description The role of a token: `admin` at most, and no stronger one than the person's own. `developer`
             *     if it is absent.
             */
            role?: components["schemas"]["Role"];
            /** @description The permissions of a token: at least one. */
            scopes: components["schemas"]["ApiScope"][];
            /**
             * @description Pattern of `sub`: 1 to 255 characters. `*` stands for any characters of one part between
             *     colons, at the end for all the rest. It does not begin with `*` and has at most five.
             */
            subject: string;
        };
        /** @description A file to be planned. */
        PlanRequest: {
            /** @description The file: YAML or JSON of the format portolan/v1, up to 5 MiB. */
            bundle: string;
            /** @description Take over objects that another file manages. */
            claim?: boolean;
            /** @description Texts of `file:` locations, by path as the file writes it. */
            files?: {
                [key: string]: string;
            };
            /** @description Which objects that the file does not have are deleted; `owned` if absent. */
            prune?: components["schemas"]["Prune"];
            /** @description Values of secrets, by reference as the file writes it. They are never shown again. */
            secrets?: {
                [key: string]: string;
            };
            /**
             * @description Only these objects of the file are planned, and only such are deleted: `servers/sales`,
             *     `sources/*`. All if absent. Up to 100.
             */
            select?: string[];
        };
        /** @description The document to preview. */
        PreviewRequest: {
            /** @description The document. */
            input: components["schemas"]["DocumentInput"];
        };
        /** @description A problem of a document, and its position. */
        Problem: {
            column?: number;
            line?: number;
            message: string;
            /** @description JSON pointer into the document. */
            pointer?: string;
            severity: components["schemas"]["Severity"];
        };
        /** @description A prompt with its messages. */
        Prompt: components["schemas"]["PromptSummary"] & {
            messages: components["schemas"]["PromptMessage"][];
        };
        /** @description An argument of a prompt, or a variable of a template. */
        PromptArgument: {
            /** @description Its meaning. */
            description?: string;
            /** @description Its name in placeholders: 1 to 64 letters, digits, `_`, `-` or `.`. */
            name: string;
            /** @description Always true for variables of a template. */
            required?: boolean;
            /** @description Display name. */
            title?: string;
            /** @description The values that completion offers, in this order. */
            values?: components["schemas"]["SuggestedValue"][];
        };
        /** @description The content of a message. Texts and URIs may have placeholders: `{{name}}`. */
        PromptBlock: {
            text: string;
            /** @enum {string} */
            type: "text";
        } | {
            /** @description Base64. */
            data: string;
            mime_type: string;
            /** @enum {string} */
            type: "image";
        } | {
            /** @description Base64. */
            data: string;
            mime_type: string;
            /** @enum {string} */
            type: "audio";
        } | {
            /** @description Base64. */
            blob?: string;
            mime_type?: string;
            /** @description Either this or `blob`. */
            text?: string;
            /** @enum {string} */
            type: "resource";
            uri: string;
        } | {
            description?: string;
            mime_type?: string;
            name: string;
            title?: string;
            /** @enum {string} */
            type: "resource_link";
            uri: string;
        };
        /** @description The prompts of a server. */
        PromptChoice: {
            prompts: components["schemas"]["ChosenPrompt"][];
        };
        /** @description A new prompt, or the new content of one. */
        PromptDefinition: {
            arguments?: components["schemas"]["PromptArgument"][];
            /** @description Its purpose. */
            description?: string;
            /** @description Enabled if absent. */
            enabled?: boolean;
            messages: components["schemas"]["PromptMessage"][];
            /** @description 1 to 64 letters, digits, `_` or `-`. */
            name: string;
            /** @description Display name. */
            title?: string;
        };
        /** @description A message of a prompt. */
        PromptMessage: {
            content: components["schemas"]["PromptBlock"];
            role: components["schemas"]["PromptRole"];
        };
        /**
         * @description The role of a message.
         * @enum {string}
         */
        PromptRole: "user" | "assistant";
        /** @description A prompt in a list. */
        PromptSummary: {
            arguments: components["schemas"]["PromptArgument"][];
            description: string;
            enabled: boolean;
            /** @example prm_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
            id: string;
            /**
             * @description Name of the file that owns it, by configuration as code: the next application of that file
             *     overwrites other changes. Absent if none does.
             */
            managed_by?: string;
            /** @description Its name for AI clients, unless a server publishes it under another. */
            name: string;
            /** @description The upstream server that has it; absent if it was written here. */
            source_name?: string;
            state: components["schemas"]["ToolState"];
            title: string;
            /** Format: date-time */
            updated_at: string;
            /** @description Slugs of the servers that offer it. */
            used_by_servers: string[];
        };
        /** @description A provider to save. */
        ProviderBody: {
            client_id: string;
            /** @description If absent, the stored secret stays as long as issuer and client do; otherwise there is none. */
            client_secret?: string | null;
            /** @description As the provider writes it, such as `https://login.example.com`. */
            issuer: string;
            /** @description Name on the button: "Continue with …". */
            name: string;
        };
        /** @description The result of a test. */
        ProviderTest: {
            /** @description The path to try a sign-in, for a browser that is signed in here. */
            sign_in_path: string;
        };
        /**
         * @description Which objects that the file does not have are deleted.
         * @enum {string}
         */
        Prune: "none" | "owned" | "all";
        /** @description The public keys of an account, or their address. */
        PublicKeysBody: {
            /** @description A JWK set. */
            jwks?: Record<string, unknown> | null;
            /** @description Or its address. */
            jwks_uri?: string | null;
        };
        /** @description A message that was queued. */
        QueuedDelivery: {
            /** @description The event, whose delivery shows the answer. */
            event: string;
        };
        /** @description The response of the API as it was received. */
        ReceivedResponse: {
            body?: components["schemas"]["BodyView"];
            /** @description In the order of the response. Cookies, and values that repeat the credential, are masked. */
            headers: components["schemas"]["HeaderLine"][];
            /**
             * Format: int32
             * @description HTTP status.
             */
            status: number;
        };
        /** @description A credential that an API refused. */
        RefusedCredential: {
            /** Format: date-time */
            at: string;
            source_id: string;
            source_name: string;
            /**
             * Format: int32
             * @description HTTP status.
             */
            status: number;
        };
        /** @description A client that this workspace registered. */
        RegisteredClient: {
            /**
             * Format: int64
             * @description Number of its present connections.
             */
            apps: number;
            /** @description The `client_id` that is typed into the program. */
            client_id: string;
            /** Format: date-time */
            created_at: string;
            /** @description False while it is switched off. */
            enabled: boolean;
            /**
             * @description Internal id of the client.
             * @example cli_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a
             */
            id: string;
            /** @description Its public keys. */
            jwks?: Record<string, unknown>;
            /** @description The address of its public keys. */
            jwks_uri?: string;
            /**
             * Format: date-time
             * @description Time when a person last allowed it to connect.
             */
            last_used_at?: string;
            /** @description Display name. */
            name: string;
            /** @description How it proves itself. */
            proof: components["schemas"]["ClientProof"];
            /** @description Its redirect URIs. */
            redirect_uris: string[];
            /** @description Its secrets, oldest first. */
            secrets: components["schemas"]["ClientSecret"][];
            /** @description Blocked by the operator of this installation. */
            stopped: boolean;
        };
        /** @description The changes of importing a document again. */
        ReimportPreview: {
            added: components["schemas"]["OperationPreview"][];
            changed: components["schemas"]["ChangedTool"][];
            /** @description SHA-256 of the document, hexadecimal. Send it to apply this very document. */
            digest: string;
            problems: components["schemas"]["Problem"][];
            removed: components["schemas"]["RemovedTool"][];
            /** @description Number of tools that do not change. */
            unchanged: number;
        };
        /** @description A document to apply. */
        ReimportRequest: {
            /** @description `digest` of the preview. */
            digest: string;
            input: components["schemas"]["DocumentInput"];
        };
        /** @description A tool whose operation is removed. */
        RemovedTool: {
            key: string;
            /** @description The reason, if the operation is still there but cannot be a tool any more. */
            reason?: string;
            tool_name: string;
            /** @description Slugs of the servers that lose it. */
            used_by_servers: string[];
        };
        /** @description The time from which deliveries are sent again. */
        Replayed: {
            /**
             * Format: int64
             * @description Number of deliveries.
             */
            count: number;
        };
        /** @description From when to send again. */
        ReplaySince: {
            /**
             * Format: date-time
             * @description Events from this time on.
             */
            since: string;
        };
        /** @description A resource with its content, except the bytes of files. */
        Resource: components["schemas"]["ResourceSummary"] & {
            /** @description Path below that source's base URL. */
            http_path?: string;
            /** @description The source that answers reads. */
            http_source_id?: string;
            /** @description The text, for a text. */
            text?: string;
        };
        /**
         * @description The origin of a resource's content.
         * @enum {string}
         */
        ResourceBody: "text" | "file" | "http" | "upstream";
        /** @description The resources of a server. */
        ResourceChoice: {
            resources: components["schemas"]["ChosenResource"][];
        };
        /** @description A new resource, or the new content of one. */
        ResourceDefinition: {
            description?: string;
            /** @description Enabled if absent. */
            enabled?: boolean;
            holds: components["schemas"]["ResourceHolds"];
            mime_type?: string;
            name: string;
            /** @description Display name. */
            title?: string;
            /** @description A URI, or a URI template (RFC 6570, levels 1 and 2) with variables in braces. */
            uri: string;
            /** @description Descriptions of variables. Each variable is in the template. */
            variables?: components["schemas"]["PromptArgument"][];
        };
        /** @description The content of a resource. */
        ResourceHolds: {
            /** @enum {string} */
            kind: "text";
            /** @description Up to 2 MiB. */
            text: string;
        } | {
            /** @description Base64. If absent, the stored file stays. */
            data?: string;
            /** @enum {string} */
            kind: "file";
        } | {
            /** @enum {string} */
            kind: "http";
            /**
             * @description Path below the source's base URL, with variables of the template in braces:
             *     `/pets/{id}?lang={lang}`.
             */
            path: string;
            /** @description The source, whose credential the request uses. */
            source_id: string;
        };
        /**
         * @description One resource, or many by a template.
         * @enum {string}
         */
        ResourceShape: "resource" | "template";
        /** @description A resource or template in a list. */
        ResourceSummary: {
            body: components["schemas"]["ResourceBody"];
            description: string;
            enabled: boolean;
            /** @example rsc_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
            id: string;
            /**
             * @description Name of the file that owns it, by configuration as code: the next application of that file
             *     overwrites other changes. Absent if none does.
             */
            managed_by?: string;
            mime_type?: string;
            name: string;
            shape: components["schemas"]["ResourceShape"];
            /**
             * Format: int32
             * @description Bytes of a text or file.
             */
            size?: number;
            /** @description The HTTP source that answers, or the upstream server that has it. */
            source_name?: string;
            state: components["schemas"]["ToolState"];
            title: string;
            /** Format: date-time */
            updated_at: string;
            /** @description URI, or URI template, for AI clients, unless a server publishes it under another. */
            uri: string;
            /** @description Slugs of the servers that offer it. */
            used_by_servers: string[];
            /** @description Variables of a template. */
            variables: components["schemas"]["PromptArgument"][];
        };
        /** @description The kept arguments and answer of a call. */
        RevealedContent: {
            /** @description The answer in JSON-RPC; absent if the client got none. */
            answer?: components["schemas"]["CapturedText"];
            /** @description Absent for a call without arguments. */
            arguments?: components["schemas"]["CapturedText"];
            /**
             * Format: date-time
             * @description From then on it is not shown any more.
             */
            ends_at: string;
        };
        /**
         * @description A member's role, strongest first.
         * @enum {string}
         */
        Role: "owner" | "admin" | "developer" | "member" | "viewer";
        /** @description A new rule. */
        RuleBody: {
            /** @description The clients that may connect. */
            rule: components["schemas"]["AdmissionRule"];
        };
        /** @description The effect of a rule on present connections. */
        RuleEffect: {
            /**
             * Format: int64
             * @description Their connections.
             */
            apps: number;
            /** @description Connected clients that could not connect any more. */
            clients: number;
            rule: components["schemas"]["AdmissionRule"];
        };
        /** @description A saved call. */
        SavedCall: {
            /** Format: date-time */
            changed_at: string;
            expect: components["schemas"]["SavedExpectations"];
            /** @example cal_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
            id: string;
            method: components["schemas"]["SavedMethod"];
            name: string;
            /** @description Parameters, as a client sends them. */
            params: {
                [key: string]: unknown;
            };
        };
        /** @description A value in the result of a saved call. */
        SavedEqual: {
            /**
             * @description A singular query of JSONPath (RFC 9535).
             * @example $.content[0].text
             */
            path: string;
            /** @description The value that stands there. */
            value: unknown;
        };
        /** @description Assertions on the answer of a saved call. */
        SavedExpectations: {
            equals?: components["schemas"]["SavedEqual"][];
            /**
             * Format: int32
             * @description Longest time to the answer, in milliseconds.
             */
            max_ms?: number | null;
            /** @description Whether `structuredContent` fits the tool's output schema. */
            schema?: boolean;
            status: components["schemas"]["SavedStatus"];
        };
        /**
         * @description A request that can be saved.
         * @enum {string}
         */
        SavedMethod: "tools/call" | "prompts/get" | "resources/read";
        /**
         * @description How a saved call has to end.
         * @enum {string}
         */
        SavedStatus: "ok" | "error";
        /**
         * @description The kind of a result.
         * @enum {string}
         */
        SearchKind: "server" | "source" | "credential" | "tool" | "prompt" | "resource" | "member" | "api_key" | "service_account" | "client";
        /** @description A result of a search. */
        SearchResult: {
            /** @description Distinguishes things of equal name: a path, a URI, an address. */
            detail: string;
            /** @description Id within its kind. A credential has the id of its source. */
            id: string;
            kind: components["schemas"]["SearchKind"];
            name: string;
        };
        /**
         * @description The second factor that a workspace requires.
         * @enum {string}
         */
        SecondFactorRule: "off" | "required" | "passkey";
        /** @description The rule, and the number of members that meet it today. */
        Security: {
            /**
             * Format: int64
             * @description Number of active members.
             */
            members: number;
            /**
             * Format: int64
             * @description Number of these with an authenticator app or a passkey.
             */
            members_with_factor: number;
            /**
             * Format: int64
             * @description Number of these with a passkey.
             */
            members_with_passkey: number;
            /** @description True if this service can use passkeys, which needs a host name. */
            passkeys_possible: boolean;
            /** @description The factor that members need beside their password. */
            second_factor: components["schemas"]["SecondFactorRule"];
        };
        /** @description A change of the rule. */
        SecurityChange: {
            second_factor: components["schemas"]["SecondFactorRule"];
        };
        /** @description A credential that the API seems to require. */
        SecurityHint: {
            authorization_url?: string;
            description?: string;
            issuer?: string;
            kind: components["schemas"]["SecurityKind"];
            /** @description `header`, `query` or `cookie`. */
            location?: string;
            name?: string;
            /** @description Scopes in the document. */
            scopes?: string[];
            token_url?: string;
        };
        /**
         * @description Kinds of credentials that a document can require.
         * @enum {string}
         */
        SecurityKind: "api_key" | "bearer" | "basic" | "oauth_client_credentials" | "oauth_authorization_code";
        /** @description A client that the workspace knows. */
        SeenClient: {
            /** @description True if it may connect now. */
            admitted: boolean;
            /** @description The people who request it, in the order of their requests. */
            askers: components["schemas"]["ClientAsker"][];
            /** @description Its `client_id`: the address of its document, or an id that this service assigned. */
            client_id: string;
            /** @description The decision about it. */
            decision?: components["schemas"]["AdmissionDecision"];
            /** @description The host of its document; absent for a client that registered itself. */
            host?: string;
            /**
             * @description Internal id of the client.
             * @example cli_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a
             */
            id: string;
            /** @description True if its name imitates a known client and no host proves it. */
            imitates: boolean;
            /** Format: date-time */
            last_used_at?: string;
            /** @description The client's own name, which is not verified. */
            name: string;
            /**
             * Format: int64
             * @description Number of people for whom it acts.
             */
            people: number;
            /** @description Its maker, if a host proves it. */
            verified?: string;
        };
        /** @description An invitation that was just sent. */
        SentInvitation: components["schemas"]["Invitation"] & {
            /**
             * @description True if it replaces a pending one for the same address. The link in the older message does
             *     not work any more.
             */
            sent_again: boolean;
        };
        /** @description The request as it was sent. */
        SentRequest: {
            body?: components["schemas"]["BodyView"];
            /** @description In the order of the request. Values of the credential are masked. */
            headers: components["schemas"]["HeaderLine"][];
            method: string;
            /** @description The value of a key in the query is masked. */
            url: string;
        };
        /** @description A server. */
        Server: {
            /** Format: date-time */
            created_at: string;
            description?: string;
            /** @example srv_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
            id: string;
            /** @description Instructions for models. */
            instructions?: string;
            /**
             * @description Name of the file that owns it, by configuration as code: the next application of that file
             *     overwrites other changes. Absent if none does.
             */
            managed_by?: string;
            name: string;
            /** Format: date-time */
            published_at?: string;
            /** @description Its segment of the URL. */
            slug: string;
            status: components["schemas"]["ServerStatus"];
            /**
             * Format: int64
             * @description Number of tools that clients see.
             */
            tool_count: number;
            /** Format: date-time */
            updated_at: string;
            /** @description The URL that people enter in their AI client. */
            url: string;
            /** @description The workspace's own URL, if this server is the default one. */
            workspace_url?: string;
        };
        /** @description The capture policy of a server. */
        ServerCapture: {
            /**
             * Format: int32
             * @description Days for which content is kept. Fewer days delete older content at once.
             */
            days: number;
            /**
             * Format: int32
             * @description The share of `sample` in percent; absent for the others.
             */
            percent?: number;
            policy: components["schemas"]["CapturePolicyName"];
        };
        /**
         * @description A change of a server: absent members stay, null clears one. The address never changes, because
         *     AI clients store it.
         */
        ServerChange: {
            description?: string | null;
            instructions?: string | null;
            name?: string;
        };
        /** @description A server that the document names. */
        ServerChoiceView: {
            description?: string;
            url: string;
        };
        /** @description A server with its tools, prompts and resources. */
        ServerDetail: components["schemas"]["Server"] & {
            /** @description By published name. */
            prompts: components["schemas"]["ServerPrompt"][];
            /** @description By published URI, including templates. */
            resources: components["schemas"]["ServerResource"][];
            /** @description By published name. */
            tools: components["schemas"]["ServerTool"][];
            /** @description Problems that some AI clients would have. */
            warnings: components["schemas"]["ClientWarning"][];
        };
        /** @description A prompt as a server offers it. */
        ServerPrompt: {
            enabled: boolean;
            name: string;
            prompt_id: string;
            /** @description Its name for clients. */
            published_name: string;
            /** @description The upstream server that has it. */
            source_name?: string;
            state: components["schemas"]["ToolState"];
            title: string;
        };
        /** @description A resource as a server offers it. */
        ServerResource: {
            enabled: boolean;
            name: string;
            /** @description Its URI or template for clients. */
            published_uri: string;
            resource_id: string;
            shape: components["schemas"]["ResourceShape"];
            /** @description The HTTP source that answers, or the upstream server that has it. */
            source_name?: string;
            state: components["schemas"]["ToolState"];
            title: string;
        };
        /**
         * @description The state of a server.
         * @enum {string}
         */
        ServerStatus: "draft" | "published" | "paused";
        /** @description A tool as a server offers it. */
        ServerTool: {
            enabled: boolean;
            method: string;
            path: string;
            /** @description Its name for clients. */
            published_name: string;
            source_name: string;
            state: components["schemas"]["ToolState"];
            title: string;
            tool_id: string;
        };
        /** @description A service account. */
        ServiceAccount: {
            /** @description Its access to the management API; absent if it has none. */
            api_access?: components["schemas"]["ApiAccess"];
            /** @description How it proves itself. */
            auth: components["schemas"]["AccountAuth"];
            /** Format: date-time */
            created_at: string;
            /** @description The person who created it, if they still have an account. */
            created_by?: string;
            /** @description False while it is switched off. */
            enabled: boolean;
            /**
             * @description Its id, which is also its `client_id`.
             * @example svc_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a
             */
            id: string;
            /** @description Its public keys. */
            jwks?: Record<string, unknown>;
            /** @description The address of its public keys. */
            jwks_uri?: string;
            /**
             * Format: date-time
             * @description Time of its last token.
             */
            last_used_at?: string;
            /** @description Display name. */
            name: string;
            /** @description URL of the one server that it may use; absent if it may use the whole workspace. */
            resource?: string;
            /** @description Its secrets, oldest first; none if it proves itself by key. */
            secrets: components["schemas"]["ClientSecret"][];
        };
        /** @description A moment of a session. */
        SessionEvent: {
            /** Format: date-time */
            at: string;
            kind: components["schemas"]["SessionMomentKind"];
            /** @description The method of MCP. */
            method?: string | null;
            node: string;
        };
        /**
         * @description What happened in a session.
         * @enum {string}
         */
        SessionMomentKind: "opened" | "request" | "notification" | "question" | "answer" | "stream" | "resumed" | "ended";
        /** @description The moments of a session, as far as the nodes remember them. */
        SessionTimeline: {
            items: components["schemas"]["SessionEvent"][];
            silent_nodes: number;
        };
        /** @description The steps that a new workspace still has to take. */
        Setup: {
            /** @description An AI client has called a tool, and the call succeeded. */
            has_call: boolean;
            has_credential: boolean;
            /** @description A server is published. */
            has_server: boolean;
            has_source: boolean;
        };
        /**
         * @description The severity of a problem.
         * @enum {string}
         */
        Severity: "error" | "warning";
        /**
         * @description The accounts that calls use.
         * @enum {string}
         */
        Sharing: "workspace" | "person";
        /** @description Instructions for the present default server of a workspace. */
        ShortConnection: {
            clients: components["schemas"]["ClientConnection"][];
            /** @description The workspace's own URL. */
            url: string;
        };
        /** @description The workspace's OAuth client at the authorization server. */
        SignInClient: {
            client_id: string;
            /** @description The issuer that knows it. */
            issuer?: string | null;
            /** @description `document`, `registered` or `entered`. */
            kind: string;
        };
        /** @description The account that the workspace connected. */
        SignInConnection: {
            /** Format: date-time */
            connected_at: string;
            /** @description The person who connected it. */
            connected_by?: string | null;
            /**
             * Format: date-time
             * @description End of the access token.
             */
            expires_at: string;
            /** @description The issuer of the tokens. */
            issuer: string;
            /**
             * @description Why a person has to sign in again: `expired`, `ended`, `refused`, or `client` if the server
             *     does not know the client any more.
             */
            reason?: string | null;
            /**
             * Format: date-time
             * @description Time of the last renewal.
             */
            refreshed_at?: string | null;
            /** @description True if tokens are renewed without a person. */
            renewable: boolean;
            /** @description The granted scopes. */
            scope?: string | null;
            /** @description `ok` or `needs_sign_in`. */
            status: string;
            /** @description Further scopes that the server required. Connecting again requests them too. */
            wanted_scope?: string | null;
        };
        /** @description The sign-in of a source. */
        SignInForm: {
            /** @description A client that was registered by hand; if absent, the known one stays. */
            client?: components["schemas"]["EnteredClient"];
            /** @description An API supports `code` only: client credentials are a kind of credential there. */
            method?: components["schemas"]["SignInMethod"];
            /** @description Scopes to request, separated by spaces; those that the server names if absent. */
            scope?: string;
            /**
             * @description The authorization server of an API; if absent, the known one stays. An MCP server names its
             *     own.
             */
            server?: components["schemas"]["EnteredServer"];
            sharing: components["schemas"]["Sharing"];
        };
        /**
         * @description How the workspace's account gets its tokens.
         * @enum {string}
         */
        SignInMethod: "code" | "client_credentials";
        /** @description An authorization server that a person entered. */
        SignInServer: {
            /** @description The authorization endpoint. */
            authorization_endpoint?: string | null;
            /** @description Its issuer; null if only its addresses were entered. */
            issuer?: string | null;
            /** @description The revocation endpoint, if there is one. */
            revocation_endpoint?: string | null;
            /** @description The token endpoint. */
            token_endpoint: string;
        };
        /** @description The sign-in of a source. */
        SignInView: {
            client?: components["schemas"]["SignInClient"] | null;
            connection?: components["schemas"]["SignInConnection"] | null;
            /**
             * Format: int64
             * @description Number of persons with a connected account of their own.
             */
            linked_persons: number;
            method: components["schemas"]["SignInMethod"];
            /** @description The person's own account, where calls use it. */
            own?: components["schemas"]["OwnAccount"];
            /** @description Redirect URI, for clients that are registered by hand. */
            redirect_uri: string;
            /** @description Requested scopes; null means those that the server names. */
            scope?: string | null;
            /**
             * @description The authorization server that was entered for an API. Absent for an MCP server, which names
             *     its own.
             */
            server?: components["schemas"]["SignInServer"];
            sharing?: components["schemas"]["Sharing"] | null;
        };
        /** @description Sign-in of members with the workspace's own provider. */
        SingleSignOn: {
            /** @description Domains of mail addresses, by name. */
            domains: components["schemas"]["TenantDomain"][];
            /**
             * @description True if this person could require the provider now: they signed in with it, or are an owner
             *     with a passkey.
             */
            may_enforce: boolean;
            provider: components["schemas"]["IdentityProvider"] | null;
        };
        /** @description A source. */
        Source: {
            /** @description Prefix of every call. */
            base_url: string;
            /** Format: date-time */
            created_at: string;
            credential?: components["schemas"]["CredentialSummary"] | null;
            /** @description SHA-256, hexadecimal. */
            document_digest?: string;
            document_url?: string;
            /** Format: int64 */
            enabled_tool_count: number;
            /** @example src_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
            id: string;
            kind: components["schemas"]["SourceKind"];
            /**
             * @description Name of the file that owns it, by configuration as code: the next application of that file
             *     overwrites other changes. Absent if none does.
             */
            managed_by?: string;
            name: string;
            security: components["schemas"]["SecurityHint"][];
            settings: components["schemas"]["SourceSettings"];
            /** @description Whose connected accounts open it instead; absent if it is not signed in to. */
            sign_in?: components["schemas"]["Sharing"];
            spec_title?: string;
            spec_version?: string;
            /** Format: int64 */
            tool_count: number;
            /** Format: date-time */
            updated_at: string;
        };
        /** @description Members to change; an absent member stays. */
        SourceChange: {
            /** @description A change to another host also removes the credential: it was given for the old one. */
            base_url?: string;
            name?: string;
            settings?: components["schemas"]["SourceSettings"];
        };
        /**
         * @description Kinds of sources.
         * @enum {string}
         */
        SourceKind: "openapi" | "http" | "mcp";
        /** @description Bounds of calls. */
        SourceSettings: {
            follow_redirects: components["schemas"]["FollowRedirects"];
            /**
             * Format: int32
             * @description Bytes of answer that are read, 1 KiB–8 MiB.
             */
            max_response_bytes: number;
            /** @description Calls of its tools may go on as MCP tasks, where the client takes them. Left out: they may not. */
            tasks?: boolean;
            /**
             * Format: int32
             * @description Milliseconds for the whole exchange, 100–120 000.
             */
            timeout_ms: number;
        };
        /** @description A workspace of the person that is stopped now. */
        StoppedWorkspace: {
            /**
             * Format: date-time
             * @description Time of its destruction, if it was deleted. Until then an owner can restore it.
             */
            delete_after?: string;
            /** @example ten_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
            id: string;
            /** @description The operator's reason. Present only if the operator stopped the workspace. */
            message?: string;
            name: string;
            role: components["schemas"]["Role"];
            /** @example acme */
            slug: string;
        };
        /** @description A value that completion offers. */
        SuggestedValue: {
            value: string;
            /** @description Offered only while these other arguments have these values, or have none yet. */
            when?: {
                [key: string]: string;
            };
        };
        /** @description The tools that were enabled or disabled. */
        Switched: {
            /** @description Number of tools whose state changed. */
            changed: number;
            /** @description Their ids, with which a client can undo the change. */
            ids: string[];
        };
        /** @description The tools to enable or disable. */
        SwitchTools: {
            enabled: boolean;
            /** @description Up to 3 000. */
            ids: string[];
        };
        /** @description Whether to look, or to agree to what was found. */
        SyncRequest: {
            /** @description `digest` of the pending changes that are agreed to. */
            agreed?: string;
        };
        /** @description The result of a look. */
        SyncResult: {
            changes: components["schemas"]["UpstreamChange"][];
            /** @description They wait until a person agrees; else they hold already. */
            held: boolean;
            /** @description The present state. */
            upstream: components["schemas"]["Upstream"];
        };
        /** @description A domain. */
        TenantDomain: {
            /**
             * Format: date-time
             * @description Time of the last check of the record.
             */
            checked_at: string | null;
            domain: string;
            id: string;
            /**
             * Format: date-time
             * @description Time since when the record of a proved domain is missing. After three days the domain is not
             *     proved any more.
             */
            missing_since: string | null;
            /** @description Name of the TXT record that proves it. */
            record_name: string;
            /** @description Text of the TXT record. */
            record_text: string;
            /**
             * Format: date-time
             * @description Time of the proof; null if it is not proved.
             */
            verified_at: string | null;
        };
        /** @description A tool that a test called. */
        TestedTool: {
            id: string;
            name: string;
        };
        /** @description The person of a personal token. */
        TokenPerson: {
            display_name: string;
            email: string;
            /** @example usr_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
            id: string;
        };
        /** @description The token of this request. */
        TokenView: {
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            expires_at: string;
            /** @description Its first characters. */
            hint: string;
            /** @example tok_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
            id: string;
            /** @description Display name. */
            name: string;
            /** @description The person of a personal token. */
            person?: components["schemas"]["TokenPerson"];
            /** @description Its permissions. */
            scopes: components["schemas"]["ApiScope"][];
            /** @description The workspaces that it opens, by name. */
            workspaces: components["schemas"]["TokenWorkspace"][];
        };
        /** @description A workspace that a token opens. */
        TokenWorkspace: {
            /** @example ten_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
            id: string;
            name: string;
            /** @description The role with which the token acts there. */
            role: components["schemas"]["Role"];
            /** @example acme */
            slug: string;
        };
        /** @description A tool with all details. */
        Tool: components["schemas"]["ToolSummary"] & {
            /** @description The definition of a tool that is described by hand. */
            definition?: components["schemas"]["HandMadeTool"];
            /** @description JSON Schema 2020-12 of the arguments. */
            input_schema: Record<string, unknown>;
            /** @description Imported texts. */
            original: components["schemas"]["OriginalWording"];
            /** @description JSON Schema of the structured result. */
            output_schema?: Record<string, unknown>;
            /** @description Repairs and omissions of the import. */
            warnings: string[];
        };
        /** @description Hints about a tool's effects, as AI clients receive them. */
        ToolAnnotations: {
            /** @default false */
            destructiveHint: boolean;
            /** @default false */
            idempotentHint: boolean;
            /** @default false */
            openWorldHint: boolean;
            /** @default false */
            readOnlyHint: boolean;
        };
        /** @description A checked choice. Nothing is stored. */
        ToolBudget: {
            /**
             * Format: int64
             * @description Estimated tokens of the list of tools, one for four bytes. Clients send the list to the
             *     model in each conversation.
             */
            tokens: number;
            /** @description In the order of the request; tools that do not exist are absent. */
            tools: components["schemas"]["ToolTokens"][];
            /** @description Problems that some AI clients would have. */
            warnings: components["schemas"]["ClientWarning"][];
        };
        /** @description A choice of tools to check. */
        ToolBudgetRequest: {
            /** @description The server's segment of the URL. Some clients put it before names. */
            slug: string;
            tools: components["schemas"]["ChosenTool"][];
        };
        /** @description A change of a tool: absent members stay, null restores the imported text. */
        ToolChange: {
            /** @description Up to 4 000 characters. */
            description?: string | null;
            enabled?: boolean;
            /** @description 1 to 64 letters, digits, `_` or `-`. */
            name?: string | null;
            /** @description Up to 120 characters. */
            title?: string | null;
        };
        /** @description The tools of a server. */
        ToolChoice: {
            tools: components["schemas"]["ChosenTool"][];
        };
        /**
         * @description Whether a tool's operation is still in its document.
         * @enum {string}
         */
        ToolState: "active" | "removed";
        /** @description A tool in a list. */
        ToolSummary: {
            annotations: components["schemas"]["ToolAnnotations"];
            /** @description True if the workspace set its own name, title or description. */
            customised: boolean;
            description: string;
            enabled: boolean;
            /** @example tol_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
            id: string;
            method: string;
            /** @description Its name for AI clients, unless a server publishes it under another. */
            name: string;
            path: string;
            source_id: string;
            source_name: string;
            state: components["schemas"]["ToolState"];
            title: string;
            /** @description Slugs of the servers that offer it. */
            used_by_servers: string[];
        };
        /** @description A tool of the choice. */
        ToolTokens: {
            /** @description What makes it hard to choose for a model, and the remedy. */
            notes: string[];
            /**
             * Format: int64
             * @description Estimated tokens of its definition.
             */
            tokens: number;
            tool_id: string;
        };
        /** @description The result of a trial: the same as an AI client would receive, and the request that was sent. */
        Trial: {
            content: components["schemas"]["ContentBlock"][];
            /**
             * Format: int32
             * @description Milliseconds.
             */
            duration_ms: number;
            /** @description Faults of the arguments; no request was sent. */
            errors?: components["schemas"]["ArgumentFault"][];
            /** @description True if the AI client would receive an error. */
            is_error: boolean;
            /** @description True if the API answered with success. */
            ok: boolean;
            /** @description The request without the credential; absent if none was sent, and for tools of an MCP server. */
            request?: components["schemas"]["SentRequest"];
            /** @description The response without the credential; absent if none arrived, and for tools of an MCP server. */
            response?: components["schemas"]["ReceivedResponse"];
            /**
             * Format: int32
             * @description HTTP status of the API.
             */
            status?: number;
            structured_content?: Record<string, unknown>;
        };
        /** @description Arguments to try. */
        TrialRequest: {
            /** @description An object, as a model would send it. */
            arguments?: Record<string, unknown>;
        };
        /** @description A trusted pipeline. */
        TrustedPipeline: {
            /** @description `aud` of the JWT. */
            audience: string;
            /** @description Further claims that the JWT must have, with their values. */
            claims: {
                [key: string]: string;
            };
            /** Format: date-time */
            created_at: string;
            /** @example pip_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
            id: string;
            /** @description `iss` of the JWT. */
            issuer: string;
            /**
             * Format: date-time
             * @description Time of the last token.
             */
            last_used_at?: string;
            /**
             * Format: int32
             * @description Minutes until a token expires.
             */
            minutes: number;
            /** @description Display name, which is also the name of its tokens. */
            name: string;
            /** @description Refused jobs since the last change, the newest first: one entry for each reason. */
            refusals: components["schemas"]["PipelineRefusal"][];
            /** @description The role of a token. */
            role: components["schemas"]["Role"];
            /** @description The permissions of a token. */
            scopes: components["schemas"]["ApiScope"][];
            /** @description Pattern of `sub`. */
            subject: string;
        };
        /** @description The state of a source's server. */
        Upstream: {
            /** @description Names of its capabilities. */
            capabilities: string[];
            /** Format: date-time */
            checked_at?: string | null;
            /** @description Changes at the server wait until a person agrees. */
            hold_changes: boolean;
            instructions?: string | null;
            /** @description Why it could not be looked at the last time. */
            last_error?: string | null;
            pending?: components["schemas"]["PendingChanges"] | null;
            /** @description Stands before the names of its tools and prompts. */
            prefix: string;
            prompts: string[];
            /** @description URIs, templates included. */
            resources: string[];
            /** @description The revision of MCP that is spoken with it. */
            revision?: string | null;
            server_name?: string | null;
            server_version?: string | null;
            /** @description What of its lists cannot be used, as sentences. */
            skipped: string[];
            /** Format: date-time */
            synced_at?: string | null;
        };
        /** @description A change of what a server offers. */
        UpstreamChange: {
            /** @description `added`, `changed` or `removed`. */
            change: string;
            /** @description `tool`, `prompt`, `resource` or `template`. */
            kind: string;
            /** @description The server's own name or URI. */
            name: string;
            /** @description Slugs of the servers that publish it. */
            used_by_servers: string[];
            /** @description What of it changed. */
            what: string[];
        };
        /** @description A server to be looked at. */
        UpstreamLook: {
            credential?: components["schemas"]["Credential"] | null;
            /** @description Address of its MCP endpoint. */
            url: string;
        };
        /** @description A server's own description, and its tools, prompts and resources. */
        UpstreamPreview: {
            instructions?: string | null;
            prompts: components["schemas"]["UpstreamPrompt"][];
            resources: components["schemas"]["UpstreamResource"][];
            /** @description The revision of MCP that is spoken with it. */
            revision: string;
            server_name?: string | null;
            server_version?: string | null;
            /** @description Definitions that cannot be used, as sentences. */
            skipped: string[];
            tools: components["schemas"]["UpstreamTool"][];
        };
        /** @description A prompt of a server. */
        UpstreamPrompt: {
            description: string;
            name: string;
            title: string;
        };
        /** @description A resource of a server, or a template of many. */
        UpstreamResource: {
            /** @description `resource` or `template`. */
            kind: string;
            name: string;
            uri: string;
        };
        /** @description Members to change; an absent member stays. */
        UpstreamSettings: {
            hold_changes?: boolean;
            prefix?: string;
        };
        /** @description A tool of a server. */
        UpstreamTool: {
            description: string;
            name: string;
            title: string;
            warnings: string[];
        };
        /** @description Some minutes. */
        UsageBucket: {
            /**
             * Format: date-time
             * @description Beginning of the bucket.
             */
            at: string;
            /**
             * Format: int64
             * @description Most calls that began in one minute.
             */
            busiest_minute: number;
            /**
             * Format: int64
             * @description Calls that began.
             */
            calls: number;
            /**
             * Format: int64
             * @description Requests that limits refused.
             */
            refused: number;
        };
        /** @description An endpoint. */
        Webhook: {
            /** Format: date-time */
            created_at: string;
            /** @description A note for people. */
            description: string;
            /** @description Why it is disabled: `failing` or `gone`. */
            disabled_reason?: string;
            /** @description Types of the events that it subscribes to. */
            events: string[];
            /**
             * Format: date-time
             * @description First failure since the last success.
             */
            failing_since?: string;
            /** @description The form of its messages. */
            format: components["schemas"]["WebhookFormat"];
            /** @description Names of its own headers. Their values are not shown. */
            header_names: string[];
            /** @example whk_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a */
            id: string;
            /** @description Name of the file of configuration that owns it. */
            managed_by?: string;
            /**
             * Format: date-time
             * @description Until then the previous secret signs too.
             */
            previous_secret_until?: string;
            /** @description Whether it takes deliveries. */
            state: components["schemas"]["WebhookStanding"];
            /** @description Where it is; of a Slack endpoint the origin alone, because the path is a secret. */
            url: string;
        };
        /** @description An HTTP exchange of a delivery. */
        WebhookAttempt: {
            /** Format: date-time */
            at: string;
            /** @description Why there was none. */
            fault?: string;
            /**
             * Format: int32
             * @description How long it took.
             */
            millis: number;
            /**
             * Format: int32
             * @description From 1.
             */
            number: number;
            /** @description The first KiB of the answer's body. */
            response_head?: string;
            /**
             * Format: int32
             * @description HTTP status, if there was an answer.
             */
            status?: number;
        };
        /** @description A change of an endpoint; absent members stay. */
        WebhookChange: {
            /** @description A note for people. */
            description?: string;
            /** @description Types of the events that it subscribes to. */
            events?: string[];
        };
        /** @description A delivery of an event. */
        WebhookDelivery: {
            /**
             * Format: date-time
             * @description When it happened.
             */
            at: string;
            /**
             * Format: int32
             * @description Attempts so far.
             */
            attempts: number;
            /** @description The event, and the `webhook-id` of every attempt. */
            event: string;
            /**
             * Format: date-time
             * @description The next attempt.
             */
            next_at?: string;
            /** @description Where the delivery stands. */
            state: components["schemas"]["DeliveryState"];
            /**
             * Format: int32
             * @description HTTP status of the last attempt.
             */
            status?: number;
            /** @description Type of the event. */
            type: string;
        };
        /** @description A delivery with its data and attempts. */
        WebhookDeliveryDetail: {
            /** @description The attempts, the first first. */
            attempts: components["schemas"]["WebhookAttempt"][];
            /** @description The `data` of the message. */
            data: Record<string, unknown>;
            delivery: components["schemas"]["WebhookDelivery"];
        };
        /**
         * @description The form of the messages that an endpoint takes.
         * @enum {string}
         */
        WebhookFormat: "standard" | "slack";
        /** @description A header of an endpoint. */
        WebhookHeader: {
            /** @description Name. */
            name: string;
            /** @description Secret value. */
            value: string;
        };
        /**
         * @description Whether an endpoint takes deliveries.
         * @enum {string}
         */
        WebhookStanding: "active" | "paused" | "disabled";
        /** @description Another address of an endpoint. */
        WebhookTarget: {
            /** @description Headers of its own, all of them: earlier ones are forgotten. */
            headers?: components["schemas"]["WebhookHeader"][];
            /** @description Where it is: an `https` URL of a public address. */
            url: string;
        };
        /** @description An endpoint with the secret that its receiver verifies by. */
        WebhookWithSecret: {
            endpoint: components["schemas"]["Webhook"];
            /** @description `whsec_…`, shown this once. A Slack endpoint has none. */
            secret?: string;
        };
        /** @description A workspace as one of its members sees it. */
        Workspace: {
            /**
             * Format: date-time
             * @description Time of its creation.
             */
            created_at: string;
            /** @description True if its servers also support HTTP+SSE, the transport of 2024-11-05. */
            http_sse: boolean;
            /**
             * @description Its id.
             * @example ten_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a
             */
            id: string;
            /** @description Display name. */
            name: string;
            /** @description The role of the person who reads it. */
            role: components["schemas"]["Role"];
            /**
             * @description Its name in URLs.
             * @example acme
             */
            slug: string;
            /**
             * @description True if tokens and keys that name no server open all servers; otherwise they open the
             *     default one.
             */
            workspace_tokens: boolean;
        };
        /** @description A change of a workspace. */
        WorkspaceChange: {
            /** @description Whether its servers also support HTTP+SSE, the transport of 2024-11-05. */
            http_sse?: boolean;
            /** @description Display name: 1 to 80 characters. */
            name?: string;
            /**
             * @description Whether tokens and keys that name no server open all servers; otherwise they open the
             *     default one.
             */
            workspace_tokens?: boolean;
        };
        /** @description The result of a deletion. */
        WorkspaceDeleted: {
            /**
             * Format: date-time
             * @description End of the time in which an owner can restore it.
             */
            delete_after: string;
        };
        /** @description The confirmation of a deletion. */
        WorkspaceDeletion: {
            /** @description The slug of the workspace, typed, which prevents the deletion of a wrong one. */
            slug: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    show_me: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The person of the session. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Me"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_personal_tokens: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tokens. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_AccessToken"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    create_personal_token: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewPersonalToken"];
            };
        };
        responses: {
            /** @description Made. It is shown this once. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedAccessToken"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    revoke_personal_token: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Token */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Revoked. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    create_command_token: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewCommandToken"];
            };
        };
        responses: {
            /** @description The code. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CommandCode"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_token: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The token. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenView"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    revoke_token: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Revoked. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    create_workspace: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewWorkspace"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Workspace"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_workspace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The workspace. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Workspace"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_workspace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WorkspaceDeletion"];
            };
        };
        responses: {
            /** @description It stopped. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkspaceDeleted"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    change_workspace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WorkspaceChange"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Workspace"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_workspace_tokens: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tokens. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_AccessToken"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    create_workspace_token: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewWorkspaceToken"];
            };
        };
        responses: {
            /** @description Made. It is shown this once. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedAccessToken"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    revoke_workspace_token: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Token */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Revoked. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_alert_rules: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The rules. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertRules"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    change_alert_rule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the rule */
                rule: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AlertRuleChange"];
            };
        };
        responses: {
            /** @description The rules after the change. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertRules"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_alerts: {
        parameters: {
            query?: {
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of alerts. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertPage"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    read_alert: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Alert */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Read, or there is none. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    read_all_alerts: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Read. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_api_keys: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The keys. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_ApiKey"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    create_api_key: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewApiKeyBody"];
            };
        };
        responses: {
            /** @description Made. It is shown this once. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedApiKey"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    revoke_api_key: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Key */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Revoked. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_connected_apps: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The apps. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_ConnectedApp"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    disconnect_app: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the connection */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Disconnected. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    add_attachment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewAttachment"];
            };
        };
        responses: {
            /** @description Added. The key is shown this once. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AddedAttachment"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_audit_events: {
        parameters: {
            query?: {
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of entries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_AuditEvent"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    export_audit_events: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One entry a line. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/jsonl": string;
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_call_views: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The views. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_CallView"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    save_call_view: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewCallViewBody"];
            };
        };
        responses: {
            /** @description Saved. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CallView"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    change_call_view: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description View */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewCallViewBody"];
            };
        };
        responses: {
            /** @description Replaced. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CallView"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_call_view: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description View */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_calls: {
        parameters: {
            query?: {
                /** @description Part of the client's name. */
                client?: string;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
                /** @description `session`, `stateless`, `console` or `unknown`. */
                era?: string;
                /** @description The reason of the failure, in words of this service. `*` stands for any text. */
                error?: string;
                /** @description At this time or later (RFC 3339). */
                from?: string;
                /** @description Longer than so many milliseconds, in steps of a microsecond. */
                longer_ms?: number;
                /**
                 * @description `ok`, `error` (every other one), `tool_error`, `invalid_arguments`, `upstream_error` or
                 *     `internal`.
                 */
                outcome?: string;
                /** @description Slug of the server. */
                server?: string;
                /** @description Shorter than so many milliseconds, in steps of a microsecond. */
                shorter_ms?: number;
                /** @description Before this time (RFC 3339). */
                to?: string;
                /** @description Name of the tool. */
                tool?: string;
                /** @description Id of a person, or a part of the name or address of a member. */
                user?: string;
            };
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of calls. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_CallLog"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_call: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Call: `_meta["io.github.portolan/callId"]` of its answer */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CallDetail"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    reveal_call: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Call */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The content. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RevealedContent"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    export_calls: {
        parameters: {
            query?: {
                /** @description Part of the client's name. */
                client?: string;
                /** @description `session`, `stateless`, `console` or `unknown`. */
                era?: string;
                /** @description The reason of the failure, in words of this service. `*` stands for any text. */
                error?: string;
                /** @description `csv` or `jsonl`. */
                format?: "csv" | "jsonl";
                /** @description At this time or later (RFC 3339). */
                from?: string;
                /** @description Longer than so many milliseconds, in steps of a microsecond. */
                longer_ms?: number;
                /**
                 * @description `ok`, `error` (every other one), `tool_error`, `invalid_arguments`, `upstream_error` or
                 *     `internal`.
                 */
                outcome?: string;
                /** @description Slug of the server. */
                server?: string;
                /** @description Shorter than so many milliseconds, in steps of a microsecond. */
                shorter_ms?: number;
                /** @description Before this time (RFC 3339). */
                to?: string;
                /** @description Name of the tool. */
                tool?: string;
                /** @description Id of a person, or a part of the name or address of a member. */
                user?: string;
            };
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One call a line. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/csv": string;
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    watch_calls: {
        parameters: {
            query?: {
                /** @description Part of the client's name. */
                client?: string;
                /** @description `session`, `stateless`, `console` or `unknown`. */
                era?: string;
                /** @description The reason of the failure, in words of this service. `*` stands for any text. */
                error?: string;
                /** @description At this time or later (RFC 3339). */
                from?: string;
                /** @description Longer than so many milliseconds, in steps of a microsecond. */
                longer_ms?: number;
                /**
                 * @description `ok`, `error` (every other one), `tool_error`, `invalid_arguments`, `upstream_error` or
                 *     `internal`.
                 */
                outcome?: string;
                /** @description Slug of the server. */
                server?: string;
                /** @description Shorter than so many milliseconds, in steps of a microsecond. */
                shorter_ms?: number;
                /** @description Before this time (RFC 3339). */
                to?: string;
                /** @description Name of the tool. */
                tool?: string;
                /** @description Id of a person, or a part of the name or address of a member. */
                user?: string;
            };
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": unknown;
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    set_client_rule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RuleBody"];
            };
        };
        responses: {
            /** @description Set. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdmissionChanged"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_client_admission: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Rule and clients. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClientAdmission"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    allow_client: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AllowBody"];
            };
        };
        responses: {
            /** @description Allowed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    dismiss_askers: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Client */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Nobody asks any more. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    decide_client: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Client */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DecisionBody"];
            };
        };
        responses: {
            /** @description Decided. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdmissionChanged"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    export_configuration: {
        parameters: {
            query?: {
                /** @description `yaml` or `json`; by `Accept` if absent, and JSON then by default. */
                format?: "yaml" | "json";
                /**
                 * @description Key of the object: the name of a source or prompt, the URI of a resource, the slug of a
                 *     server, the URL of an endpoint of webhooks.
                 */
                key?: string;
                /**
                 * @description Only the object of this kind with this `key`. The answer is a part of the file, and no file:
                 *     it has neither `format` nor `name`.
                 */
                kind?: "source" | "prompt" | "resource" | "server" | "webhook";
                /**
                 * @description The name of the file. If absent: of the file that owns most objects, else the workspace's
                 *     slug.
                 */
                name?: string;
            };
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file, of the format portolan/v1. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                    "application/yaml": unknown;
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    plan_configuration: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PlanRequest"];
            };
        };
        responses: {
            /** @description The changes. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConfigurationPlan"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    apply_configuration: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Plan */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ApplyRequest"];
            };
        };
        responses: {
            /** @description Applied. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AppliedConfiguration"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_connects: {
        parameters: {
            query?: {
                /** @description Selects attempts of this client, by its `client_id`. */
                client_id?: string;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
                /** @description The request id of an error page: selects the attempt with that request. */
                request_id?: string;
            };
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The attempts. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_ConnectAttempt"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    choose_default_server: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DefaultServer"];
            };
        };
        responses: {
            /** @description Chosen. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_event_types: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The types. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_EventTypeView"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    listen_to_events: {
        parameters: {
            query?: {
                /** @description Types, separated by commas. `server.*` stands for all that begin so. All, if absent. */
                events?: string;
                /** @description Also retained events from this time on (RFC 3339). `Last-Event-ID` wins over it. */
                since?: string;
            };
            header?: {
                /** @description Id of the last event that the client read. */
                "Last-Event-ID"?: string | null;
            };
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": unknown;
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    preview_import: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PreviewRequest"];
            };
        };
        responses: {
            /** @description What it would become. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportPreview"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_insights: {
        parameters: {
            query?: {
                /** @description Of the client with this name. */
                client?: string;
                /** @description `ok`, `tool_error`, `invalid_arguments`, `upstream_error` or `internal`. */
                outcome?: string;
                /** @description `1h`, `6h`, `24h`, `7d`, `30d` or `90d`. */
                period?: "1h" | "6h" | "24h" | "7d" | "30d" | "90d";
                /** @description Through the server with this slug. */
                server?: string;
                /** @description Of this tool. */
                tool?: string;
            };
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What happened. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Insights"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_error_causes: {
        parameters: {
            query?: {
                /** @description Of the client with this name. */
                client?: string;
                /** @description `ok`, `tool_error`, `invalid_arguments`, `upstream_error` or `internal`. */
                outcome?: string;
                /** @description `1h`, `6h`, `24h`, `7d`, `30d` or `90d`. */
                period?: "1h" | "6h" | "24h" | "7d" | "30d" | "90d";
                /** @description Through the server with this slug. */
                server?: string;
                /** @description Of this tool. */
                tool?: string;
            };
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Failures by cause. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorCauses"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_people_use: {
        parameters: {
            query?: {
                /** @description Of the client with this name. */
                client?: string;
                /** @description `ok`, `tool_error`, `invalid_arguments`, `upstream_error` or `internal`. */
                outcome?: string;
                /** @description `1h`, `6h`, `24h`, `7d`, `30d` or `90d`. */
                period?: "1h" | "6h" | "24h" | "7d" | "30d" | "90d";
                /** @description Through the server with this slug. */
                server?: string;
                /** @description Of this tool. */
                tool?: string;
            };
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Calls by person. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PeopleUse"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_invitations: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The invitations, newest first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_Invitation"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    invite: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewInvitationBody"];
            };
        };
        responses: {
            /** @description On its way. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SentInvitation"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    revoke_invitation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Invitation */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Taken back. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_limits: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The limits. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Limits"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    change_limits: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LimitsChange"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Limits"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    speak_mcp: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        /** @description A JSON-RPC message of MCP. */
        requestBody: {
            content: {
                "application/json": unknown;
            };
        };
        responses: {
            /** @description The answer: a JSON-RPC message, as JSON or as one event. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                    "text/event-stream": string;
                };
            };
            /** @description The notification is accepted. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal by the rules of MCP, or an unreadable body. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description No such method in MCP 2026-07-28 or at this server, or no such workspace. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_members: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The members. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_Member"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    remove_member: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Person */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    change_member: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Person */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MemberChange"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Member"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_overview: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The overview. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Overview"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_prompts: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The prompts. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_PromptSummary"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    create_prompt: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PromptDefinition"];
            };
        };
        responses: {
            /** @description Made. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Prompt"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_prompt: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Prompt */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The prompt. */
            200: {
                headers: {
                    /** @description The revision of the workspace's registry, for `If-Match`. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Prompt"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    rewrite_prompt: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Prompt */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PromptDefinition"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Prompt"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_prompt: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Prompt */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Deleted"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    switch_prompt: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Prompt */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EnabledChange"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Prompt"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    restore_prompt: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Prompt */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Restored. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Prompt"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_registered_clients: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The clients. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_RegisteredClient"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    register_client: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewClientBody"];
            };
        };
        responses: {
            /** @description Made. The secret is shown this once. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedClient"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_registered_client: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Client */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    change_registered_client: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Client */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ClientChange"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RegisteredClient"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    replace_client_keys: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Client */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PublicKeysBody"];
            };
        };
        responses: {
            /** @description Replaced. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RegisteredClient"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    add_client_secret: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Client */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Made. It is shown this once. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewSecret"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    revoke_client_secret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Client */
                id: string;
                /** @description Secret */
                secret: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Revoked. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_resources: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The resources. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_ResourceSummary"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    create_resource: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResourceDefinition"];
            };
        };
        responses: {
            /** @description Made. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Resource"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_resource: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Resource */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The resource. */
            200: {
                headers: {
                    /** @description The revision of the workspace's registry, for `If-Match`. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Resource"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    rewrite_resource: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Resource */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResourceDefinition"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Resource"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_resource: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Resource */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Deleted"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    switch_resource: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Resource */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EnabledChange"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Resource"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    restore_resource: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Resource */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Restored. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Resource"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    restore_workspace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It works again. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    search_workspace: {
        parameters: {
            query: {
                /** @description Words that a result contains in its name or detail, in any case: at most 200 characters. */
                q: string;
            };
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The best results first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_SearchResult"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_security: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The rule. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Security"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    change_security: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SecurityChange"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Security"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_servers: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The servers. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_Server"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    create_server: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewServer"];
            };
        };
        responses: {
            /** @description Made. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Server"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_server: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Server */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The server. */
            200: {
                headers: {
                    /** @description The revision of the workspace's registry, for `If-Match`. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ServerDetail"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_server: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Server */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Deleted"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    change_server: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Server */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ServerChange"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Server"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_server_calls: {
        parameters: {
            query?: {
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description Server */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of calls. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_CallLog"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_capture: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Server */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The policy. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ServerCapture"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    set_capture: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Server */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ServerCapture"];
            };
        };
        responses: {
            /** @description Set. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ServerCapture"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_captured: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Server */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedContent"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_connection: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Server */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The instructions. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Connection"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    pause_server: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Server */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Paused. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Server"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    choose_prompts: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Server */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PromptChoice"];
            };
        };
        responses: {
            /** @description Replaced. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ServerDetail"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    publish_server: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Server */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Published. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Server"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    choose_resources: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Server */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResourceChoice"];
            };
        };
        responses: {
            /** @description Replaced. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ServerDetail"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    restore_server: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Server */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Restored. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Server"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_saved_calls: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Server */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The calls. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_SavedCall"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    save_call: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Server */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewSavedCallBody"];
            };
        };
        responses: {
            /** @description Saved. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SavedCall"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    change_saved_call: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Saved call */
                call: string;
                /** @description Server */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewSavedCallBody"];
            };
        };
        responses: {
            /** @description Replaced. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SavedCall"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_saved_call: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Saved call */
                call: string;
                /** @description Server */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    choose_tools: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Server */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ToolChoice"];
            };
        };
        responses: {
            /** @description Replaced. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ServerDetail"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    check_tools: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ToolBudgetRequest"];
            };
        };
        responses: {
            /** @description Tokens and problems. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolBudget"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_service_accounts: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The accounts. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_ServiceAccount"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    create_service_account: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewAccountBody"];
            };
        };
        responses: {
            /** @description Made. The secret is shown this once. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedAccount"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_service_account: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Account */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    change_service_account: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Account */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AccountChange"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ServiceAccount"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    give_api_access: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Account */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewApiAccess"];
            };
        };
        responses: {
            /** @description Given. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ServiceAccount"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    take_api_access: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Account */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Taken away. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    replace_public_keys: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Account */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PublicKeysBody"];
            };
        };
        responses: {
            /** @description Replaced. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ServiceAccount"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    add_account_secret: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Account */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Made. It is shown this once. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewSecret"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    revoke_account_secret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Account */
                id: string;
                /** @description Secret */
                secret: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Revoked. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_sessions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The sessions. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenSessions"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    end_session: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Session */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Ended. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_session_timeline: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Session */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The moments. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionTimeline"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_single_sign_on: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What is set up. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SingleSignOn"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    add_domain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewDomain"];
            };
        };
        responses: {
            /** @description Added. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SingleSignOn"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    remove_domain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Domain */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    check_domain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Domain */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Found: the domain is proved. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SingleSignOn"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    enforce_single_sign_on: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Enforcement"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SingleSignOn"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    set_identity_provider: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ProviderBody"];
            };
        };
        responses: {
            /** @description Entered. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SingleSignOn"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_identity_provider: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    test_identity_provider: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It answers. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProviderTest"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_sources: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The sources. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_Source"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    create_source: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewSource"];
            };
        };
        responses: {
            /** @description Added. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Source"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_source: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The source. */
            200: {
                headers: {
                    /** @description The revision of the workspace's registry, for `If-Match`. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Source"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_source: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Deleted"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    change_source: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SourceChange"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Source"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    connect_source: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Where to go on. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConnectAnswer"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    disconnect_source: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Disconnected, or there was none. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description There is no such source. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_attachment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its state. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Attachment"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    replace_attachment_key: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Made. It is shown this once. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AttachmentKey"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    set_credential: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Credential"];
            };
        };
        responses: {
            /** @description Set. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CredentialSummary"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_credential: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Forgotten, or there was none. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    test_credential: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CredentialTestRequest"];
            };
        };
        responses: {
            /** @description What it showed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CredentialTest"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    apply_reimport: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReimportRequest"];
            };
        };
        responses: {
            /** @description Applied. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Source"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    preview_reimport: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PreviewRequest"];
            };
        };
        responses: {
            /** @description What would change. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReimportPreview"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    restore_source: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Restored. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Source"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_sign_in: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SignInView"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    set_sign_in: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SignInForm"];
            };
        };
        responses: {
            /** @description Set. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SignInView"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_sign_in: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Forgotten, or there was none. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    sync_upstream: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SyncRequest"];
            };
        };
        responses: {
            /** @description What was found. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SyncResult"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_source_tools: {
        parameters: {
            query?: {
                /** @description `next_cursor` of the page before. */
                cursor?: string;
                /** @description Words in name, title, description, method or path. */
                query?: string;
            };
            header?: never;
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of tools. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_ToolSummary"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    create_tool: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["HandMadeTool"];
            };
        };
        responses: {
            /** @description Made. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tool"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_upstream: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What is known. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Upstream"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    change_upstream: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Source */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpstreamSettings"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Upstream"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_tools: {
        parameters: {
            query?: {
                /** @description `next_cursor` of the page before. */
                cursor?: string;
                /** @description Only enabled ones, or only disabled ones. */
                enabled?: boolean;
                /** @description Words in name, title, description, method or path. */
                query?: string;
                /** @description Only of this source. */
                source?: string;
            };
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of tools. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_ToolSummary"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_tool: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Tool */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tool. */
            200: {
                headers: {
                    /** @description The revision of the workspace's registry, for `If-Match`. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tool"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_tool: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Tool */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    change_tool: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Tool */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ToolChange"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tool"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    redefine_tool: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the object that is changed; 412 if the workspace changed since. */
                "If-Match"?: string;
            };
            path: {
                /** @description Tool */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["HandMadeTool"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tool"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    try_tool: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Tool */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TrialRequest"];
            };
        };
        responses: {
            /** @description What it gave. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Trial"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    switch_tools: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SwitchTools"];
            };
        };
        responses: {
            /** @description Switched. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Switched"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_trash: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What can be restored. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_DeletedThing"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_trusted_pipelines: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The trusted pipelines. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_TrustedPipeline"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    create_trusted_pipeline: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PipelineTrust"];
            };
        };
        responses: {
            /** @description Trusted. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TrustedPipeline"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    change_trusted_pipeline: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Trusted pipeline */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PipelineTrust"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TrustedPipeline"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_trusted_pipeline: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Trusted pipeline */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    add_upstream: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewUpstream"];
            };
        };
        responses: {
            /** @description Added. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Source"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    preview_upstream: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpstreamLook"];
            };
        };
        responses: {
            /** @description What it offers. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UpstreamPreview"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_webhooks: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The endpoints. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_Webhook"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    create_webhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewWebhook"];
            };
        };
        responses: {
            /** @description Created. The secret is shown this once. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Endpoint */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The endpoint. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Endpoint */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    change_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Endpoint */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookChange"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    list_deliveries: {
        parameters: {
            query?: {
                /** @description `next_cursor` of the page before. */
                cursor?: string;
                /** @description Only deliveries in this state. */
                state?: components["schemas"]["DeliveryState"];
            };
            header?: never;
            path: {
                /** @description Endpoint */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of deliveries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_WebhookDelivery"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    show_delivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Event */
                event: string;
                /** @description Endpoint */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The delivery. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookDeliveryDetail"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    replay_delivery: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Event */
                event: string;
                /** @description Endpoint */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Queued. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueuedDelivery"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    pause_webhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Endpoint */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Paused. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    replay_since: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Endpoint */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReplaySince"];
            };
        };
        responses: {
            /** @description Queued. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Replayed"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    resume_webhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Endpoint */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Active. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    rotate_webhook_secret: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Endpoint */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Rotated. The new secret is shown this once. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    move_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Endpoint */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookTarget"];
            };
        };
        responses: {
            /** @description Moved. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    test_webhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description With a token: the request is carried out once for each key, and its answer is repeated for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Endpoint */
                id: string;
                /** @description Slug */
                ws: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Queued. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueuedDelivery"];
                };
            };
            /** @description A refusal: what is wrong, and what to do. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
}

/** For each action, the roles that may do it. */
export const rolesOf = {
  "read": [
    "viewer",
    "member",
    "developer",
    "admin",
    "owner"
  ],
  "call_tools": [
    "member",
    "developer",
    "admin",
    "owner"
  ],
  "edit_registry": [
    "developer",
    "admin",
    "owner"
  ],
  "administer": [
    "admin",
    "owner"
  ]
} as const;
