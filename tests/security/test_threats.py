"""Each threat we defend against and each promise we make, with the tests that prove it.

The ids are stable names; the security page uses them too.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REST = "tests/surfaces/rest/test_rest_calls.py::"
SOCKET = "tests/surfaces/websocket/test_ws_hostile.py::"
DEFECTS = "tests/surfaces/websocket/test_ws_defects.py::"
MCP = "tests/surfaces/mcp/test_mcp_"
NET = "tests/net/test_net_"
SOURCE = "tests/sources/mcp/test_mcp_"
APPROVAL = "tests/approval/test_"
STORE = "tests/store/test_sqlite_faults.py::"
POSTGRES = "tests/store/test_postgres_faults.py::"
RESTORED = "tests/app/test_restored.py::"
LIFE = "tests/app/test_lifecycle.py::"
ADMIN = "tests/surfaces/admin/test_admin_"
CONFIG = "tests/config/test_config_"
PLUGIN = "tests/sources/plugin/test_plugin_source.py::"
HIDES = "tests/cli/test_gateway_hides.py::"
HERE = "tests/security/test_"
SIGNING = "tests/oauth/test_signing_in.py::"
ACCOUNTS = "tests/oauth/test_connected_accounts.py::"
OAUTH = "tests/oauth/test_oauth_client.py::"
TOLD = "tests/oauth/test_told_people.py::"
VAULT_CANARIES = "tests/vault/test_vault_canaries.py::"

PROOFS: dict[str, tuple[str, tuple[str, ...]]] = {
    "T01": (
        "Strangers who never authenticate use nothing and keep nobody out.",
        (
            SOCKET + "test_the_first_message_must_be_auth_with_a_good_token",
            SOCKET + "test_a_stranger_who_says_nothing_is_closed_in_time",
            HERE + "crowds.py::test_three_hundred_strangers_do_not_keep_a_good_agent_out",
            REST + "test_without_a_right_token_nothing_is_served",
        ),
    ),
    "T02": (
        "Guessing tokens gets slow; a short one is warned about.",
        (
            SOCKET + "test_guessing_tokens_gets_slow_but_the_right_token_still_works",
            NET + "guard.py::test_ten_failures_in_a_minute_close_the_door_for_the_rest_of_it",
            CONFIG + "load.py::test_a_short_token_is_a_warning",
        ),
    ),
    "T03": (
        "A web page or a rebound name reaches no listener.",
        (
            REST + "test_a_foreign_host_or_origin_is_refused_on_every_path",
            SOCKET + "test_an_upgrade_that_must_not_be_is_refused_before_there_is_a_websocket",
            ADMIN + "login.py::test_what_another_page_makes_a_browser_send_is_refused",
            NET + "guard.py::test_only_no_origin_or_an_own_one_is_answered",
        ),
    ),
    "T04": (
        "A Host header chooses no path.",
        (HERE + "crowds.py::test_a_host_header_chooses_no_path_and_opens_nothing",),
    ),
    "T05": (
        "No agent gets what belongs to another, whatever ids both use.",
        (
            HERE + "crowds.py::test_equal_ids_of_two_agents_on_two_surfaces_are_never_mixed_up",
            HERE + "crowds.py::test_a_call_a_session_and_a_state_belong_to_the_agent_that_made_them",
            DEFECTS + "test_the_outcome_of_a_running_call_is_told_to_its_own_caller_only",
            MCP + "handshake.py::test_a_session_belongs_to_the_caller_that_began_it",
            "tests/modes/test_gateway_mode.py::test_another_agents_handle_is_like_one_that_never_was",
        ),
    ),
    "T06": (
        "Headers that do not repeat the body are refused before anything runs.",
        (MCP + "modern.py::test_a_header_that_does_not_repeat_the_body_is_refused_before_anything_runs",),
    ),
    "T07": (
        "A request state serves only its caller, its request, its time, and once.",
        (
            MCP + "modern.py::test_a_state_is_refused_to_others_for_other_arguments_and_when_touched",
            MCP + "modern.py::test_a_further_round_runs_once_whatever_idempotency_keys_its_client_makes_up",
            MCP + "modern.py::test_a_state_in_the_metadata_of_a_client_reaches_nobody",
            MCP + "hostile.py::test_a_state_opens_for_the_same_request_until_it_expires",
            MCP + "hostile.py::test_no_flipped_bit_goes_unnoticed",
        ),
    ),
    "T08": (
        "Hostile JSON is an error, and the next message is served.",
        (
            REST + "test_hostile_json_gets_an_error_and_the_next_call_is_served",
            SOCKET + "test_json_that_two_parsers_could_read_differently_is_a_parse_error",
            MCP + "hostile.py::test_arguments_nested_too_deep_are_refused_before_anybody_walks_them",
            MCP + "repeats.py::test_a_request_that_gives_a_key_twice_is_a_parse_error_and_runs_nothing",
        ),
    ),
    "T09": (
        "Slow senders and readers are cut off and cost the others nothing.",
        (
            NET + "hostile.py::test_a_slow_head_is_cut_off",
            NET + "hostile.py::test_a_body_that_stops_or_only_trickles_is_cut_off",
            SOCKET + "test_an_agent_that_does_not_read_is_closed_and_the_others_are_served",
        ),
    ),
    "T10": (
        "No type, spelling or undeclared argument slips past a rule.",
        (
            "tests/policy/test_decide.py::test_an_undeclared_argument_never_rides_along_on_an_allow_rule",
            "tests/policy/test_undeclared.py::test_adding_undeclared_arguments_never_weakens_a_deny",
            "tests/policy/test_undeclared.py::test_an_allow_that_spells_arguments_covers_what_it_names_and_what_is_declared",
            HERE + "policy_bypass.py::test_a_number_is_the_same_number_however_it_is_written",
            HERE + "policy_bypass.py::test_another_type_than_the_declared_one_reaches_nobody",
            HERE + "policy_bypass.py::test_a_text_that_is_not_what_it_looks_like_is_no_identifier",
            HERE + "policy_bypass.py::test_a_denied_value_cannot_hide_behind_the_cut_of_a_long_one",
            "tests/core/test_signatures.py::test_no_value_can_fake_a_separator",
        ),
    ),
    "T11": (
        "Deny wins, then allow, then ask; a fault inside the engine is a deny.",
        (
            "tests/policy/test_decide.py::test_deny_beats_allow_beats_ask_whatever_their_order",
            "tests/policy/test_decide.py::test_the_engine_agrees_with_the_meaning_written_down",
            "tests/policy/test_decide.py::test_a_fault_inside_the_engine_is_a_deny",
            HERE
            + "approvals_late.py::"
            + "test_a_question_ends_itself_when_a_rule_denies_its_call_or_its_agent_is_gone",
        ),
    ),
    "T12": (
        "What was approved is what runs.",
        (
            LIFE + "test_what_was_asked_about_does_not_run_when_its_tool_changed_before_the_answer",
            LIFE + "test_what_was_asked_about_does_not_run_when_its_arguments_were_changed_in_the_store",
            LIFE + "test_a_changed_tool_voids_what_was_approved_and_granted",
            LIFE + "test_a_tool_that_sends_another_request_voids_what_was_granted",
        ),
    ),
    "T13": (
        "Only the people who may answer do, and each question is answered once.",
        (
            APPROVAL + "telegram.py::test_strangers_forgers_and_repeaters_change_nothing",
            APPROVAL + "telegram.py::test_two_people_racing_resolve_once",
            APPROVAL + "webhook.py::test_a_made_up_link_is_refused",
            APPROVAL + "terminal.py::test_no_surface_of_the_agents_takes_an_answer",
            HERE + "shown.py::test_an_answer_needs_more_than_knowing_the_question",
        ),
    ),
    "T14": (
        "People see what will run, whatever characters it is made of.",
        (
            APPROVAL + "parts.py::test_hostile_questions_are_readable_on_every_channel",
            APPROVAL + "telegram.py::test_long_arguments_are_folded_and_offered_in_full",
            APPROVAL + "webhook.py::test_the_answer_page_shows_hostile_text_as_text",
            "tests/ui/test_ui_operating.py::test_hostile_arguments_are_shown_as_what_they_are",
            HERE + "policy_bypass.py::test_a_question_is_worded_in_one_pass",
        ),
    ),
    "T15": (
        "Nobody is flooded with questions.",
        (
            APPROVAL + "telegram.py::test_a_flood_of_asks_is_ten_messages",
            REST + "test_at_most_ten_questions_of_one_agent_wait_at_a_time",
            REST + "test_identical_pending_asks_are_one_question_and_one_execution",
        ),
    ),
    "T16": (
        "Every way in meets the same rules.",
        (
            HERE + "policy_bypass.py::test_a_denied_call_is_denied_alike_on_every_path_and_reaches_nobody",
            HERE + "policy_bypass.py::test_the_stripped_name_of_a_tool_cannot_be_called_around_tool_execute",
        ),
    ),
    "T17": (
        "An answer does not tell which tools exist out of sight.",
        (
            REST + "test_unknown_and_out_of_sight_answer_the_same",
            "tests/modes/test_gateway_mode.py::test_a_denied_tool_is_found_by_no_query_and_listed_in_no_mode",
        ),
    ),
    "T20": (
        "A server's texts are cleaned and are only data.",
        (
            HERE + "upstreams.py::test_hidden_characters_in_a_servers_texts_are_gone_everywhere",
            SOURCE + "parts.py::test_hidden_characters_are_taken_out_of_texts",
            "tests/discovery/test_cards.py::test_a_description_cannot_break_out_of_its_line_or_hide_text",
        ),
    ),
    "T21": (
        "A definition that changes is shown, and held where the operator says so.",
        (
            HERE
            + "outages.py::"
            + "test_a_definition_that_changed_is_shown_as_a_difference_and_held_where_the_operator_says_so",
        ),
    ),
    "T22": (
        "No server takes another's names.",
        (
            CONFIG + "load.py::test_two_keys_that_fold_to_one_namespace_are_refused_naming_both",
            "tests/core/test_catalog.py::test_a_server_cannot_take_the_name_of_a_meta_tool",
            "tests/core/test_catalog.py::test_two_equal_ids_in_one_upstream_are_refused",
            "tests/policy/test_decide.py::test_a_tool_that_got_another_name_meets_the_rules_of_that_name",
        ),
    ),
    "T23": (
        "A result that looks like a message is text.",
        (
            HERE + "upstreams.py::test_a_result_that_looks_like_a_message_is_text",
            MCP + "hostile.py::test_text_in_a_result_stays_text",
        ),
    ),
    "T24": (
        "No framing of an answer carries a denied tool past the rules.",
        (
            HERE + "outages.py::test_no_framing_of_a_servers_answer_carries_a_denied_tool_past_the_rules",
            SOURCE + "parts.py::test_events_are_the_same_wherever_the_stream_is_cut",
        ),
    ),
    "T25": (
        "A tool whose schema names a malicious header is left out alone.",
        (SOURCE + "http.py::test_a_tool_with_a_malicious_header_is_left_out_and_its_siblings_stay",),
    ),
    "T26": (
        "Only the operator's files start programs, and never through a shell.",
        (
            HERE + "upstreams.py::test_a_command_is_a_program_and_never_a_line_for_a_shell",
            HERE + "upstreams.py::test_no_surface_lets_an_agent_add_or_try_a_server",
            SOURCE + "source_stdio.py::test_a_child_sees_only_its_declared_environment",
        ),
    ),
    "T27": (
        "No server sees another's secrets, nor looks into the gateway.",
        (
            HERE
            + "upstreams.py::test_two_servers_never_see_each_others_secrets_nor_the_gateways_environment",
            HERE + "upstreams.py::test_each_credential_goes_to_its_own_upstream_only",
            HIDES + "test_no_other_process_of_its_user_reads_the_gateways_environment_or_memory",
        ),
    ),
    "T28": (
        "A server's processes end with it, and with the gateway.",
        (
            SOURCE + "source_stdio.py::test_a_stubborn_child_and_its_grandchild_are_gone_after_closing",
            SOURCE + "source_stdio.py::test_a_grandchild_does_not_outlive_a_child_that_ends_by_itself",
            SOURCE + "source_stdio.py::test_a_killed_gateway_leaves_neither_children_nor_grandchildren",
        ),
    ),
    "T29": (
        "What a server names is never fetched from inside.",
        (
            NET + "addresses.py::test_a_private_or_special_address_is_refused",
            OAUTH + "test_t29_a_server_that_is_elsewhere_cannot_point_into_our_network",
            HERE + "upstreams.py::test_a_schema_is_never_fetched_from_elsewhere_and_its_tool_is_left_out",
            SOURCE + "http.py::test_no_other_redirect_is_followed_and_the_reason_names_its_address",
            SOURCE + "http.py::test_an_sse_server_cannot_send_our_requests_to_another_origin",
        ),
    ),
    "T30": (
        "An agent's token goes no further than the gateway.",
        (HERE + "upstreams.py::test_the_agents_token_and_headers_reach_no_upstream",),
    ),
    "T31": (
        "No expression takes more than linear time.",
        (
            CONFIG + "tools.py::test_an_expression_runs_in_linear_time",
            CONFIG + "tools.py::test_an_expression_that_cannot_run_in_linear_time_is_refused_with_its_line",
            "tests/results/test_pattern.py::test_hostile_patterns_take_time_in_proportion_to_the_text",
        ),
    ),
    "T32": (
        "Endless or broken output ends in an error, in bounded memory.",
        (
            SOURCE + "source_stdio.py::test_a_line_without_end_is_cut_off_in_bounded_memory",
            SOURCE + "source_stdio.py::test_a_flood_of_notices_costs_a_handful_of_lists",
            SOURCE + "source_stdio.py::test_invalid_utf8_and_endless_nesting_are_no_results",
            SOURCE + "http.py::test_an_answer_without_end_is_cut_off",
        ),
    ),
    "T40": (
        "Nobody is signed in without a person's leave, and an agent's flow counts once its person confirmed it.",
        (
            SIGNING
            + "test_t40_an_agent_begins_a_flow_with_leave_and_the_account_counts_when_the_person_confirmed_it",
            "tests/oauth/test_callers_accounts.py::test_a_denied_invitation_ends_its_sign_in",
        ),
    ),
    "T41": (
        "A state is random, good once, and for its own flow; the callback shows nothing of what it was sent.",
        (
            ACCOUNTS + "test_t41_a_state_is_good_once_and_for_its_own_flow",
            SIGNING
            + "test_t41_a_denied_or_invented_callback_connects_nothing_and_shows_nothing_of_what_it_brought",
        ),
    ),
    "T42": (
        "Only the issuer that was asked may answer.",
        (OAUTH + "test_t42_only_the_issuer_that_was_asked_may_answer",),
    ),
    "T43": (
        "Without S256 nobody is sent anywhere.",
        (OAUTH + "test_t43_without_s256_nobody_is_sent_anywhere",),
    ),
    "T44": (
        "An odd address is refused before anybody sees it.",
        (OAUTH + "test_t44_an_odd_address_is_refused_before_anybody_sees_it",),
    ),
    "T45": (
        "A pasted code is taken from whoever began; a device code names who asks, for what and until when.",
        (
            ACCOUNTS + "test_t45_a_pasted_code_is_taken_from_whoever_began_it_alone",
            TOLD + "test_t45_a_device_code_that_an_agent_asked_for_comes_to_the_person_who_let_it",
            OAUTH + "test_polling_slows_down_when_told_and_stops_at_a_no",
        ),
    ),
    "T46": (
        "A token is renewed once, however many ask in however many gateways.",
        (
            "tests/oauth/test_two_gateways.py::test_t46_two_hundred_calls_with_an_expired_token_renew_once_however_many_gateways",
            ACCOUNTS + "test_t46_two_hundred_calls_on_two_gateways_renew_once",
        ),
    ),
    "T47": (
        "The vault opens with its own key only, and nothing in it can be swapped, cut or altered.",
        (
            "tests/vault/test_vault_keeps.py::test_a_swapped_cut_or_renamed_value_fails_closed_and_names_its_key",
            "tests/vault/test_vault_keeps.py::test_another_secret_opens_nothing_and_changes_nothing",
            "tests/vault/test_vault_commands.py::test_a_copy_has_the_vaults_key_only_by_wish_and_shows_nothing",
        ),
    ),
    "T48": (
        "What was registered with one issuer is never shown to another.",
        (SIGNING + "test_t48_a_server_that_moves_to_another_authorization_server_is_met_as_a_stranger",),
    ),
    "T49": (
        "A sign-in that was taken back is told once and not tried again; ending one revokes it.",
        (
            TOLD + "test_a_lost_sign_in_is_told_once_and_a_press_brings_a_new_link",
            ACCOUNTS + "test_ending_an_account_revokes_it_at_the_server",
        ),
    ),
    "T60": (
        "The admin socket belongs to its user.",
        (
            APPROVAL + "terminal.py::test_the_admin_socket_belongs_to_its_user",
            NET + "tls.py::test_the_unix_socket_is_private_and_tells_the_peers_uid",
            NET + "tls.py::test_a_socket_path_that_others_could_have_prepared_is_refused",
            HERE + "shown.py::test_the_admin_listener_opens_to_no_stranger_and_no_agent",
        ),
    ),
    "T61": (
        "Pairing starts on the admin socket and nowhere else.",
        (
            "tests/remote/test_paired_host.py::test_p27_pairing_starts_on_the_admin_socket_and_nowhere_else",
            "tests/remote/test_peers_listener.py::test_p27_a_paired_cli_operates_the_gateway_and_can_never_pair",
        ),
    ),
    "P1-20": (
        "Whoever replays, splices, alters or stands between pairs nobody.",
        (
            "tests/peers/test_pairing_handshake.py::test_p1_an_initiation_from_another_time_gets_an_error_and_nothing_else",
            "tests/peers/test_pairing_handshake.py::test_p2_an_initiation_that_was_seen_is_refused",
            "tests/peers/test_pairing_handshake.py::test_p12_the_right_answer_signed_for_another_handshake_is_refused",
            "tests/peers/test_pairing_handshake.py::test_p13_parts_of_two_handshakes_do_not_fit_together",
            "tests/peers/test_pairing_handshake.py::test_whoever_changes_anything_on_the_way_pairs_nobody",
            "tests/peers/test_pairing_handshake.py::test_messages_that_come_twice_late_or_not_at_all_pair_nobody_wrongly",
            "tests/peers/test_pairing_handshake.py::test_p16_to_p18_a_request_gives_nothing_but_its_key",
            "tests/remote/test_paired_host.py::test_p5_somebody_in_the_middle_is_found_out_in_phase_two",
            "tests/remote/test_dialled_hosts.py::test_somebody_between_a_dialling_host_and_its_gateway_is_found_out",
        ),
    ),
    "P21-22": (
        "A handshake that a crash cuts short leaves no peer, or one that works.",
        (
            "tests/remote/test_pairing_crashes.py::test_p21_a_gateway_that_dies_in_a_handshake",
            "tests/remote/test_pairing_crashes.py::test_p22_a_host_that_dies_in_a_handshake",
        ),
    ),
    "P23-25": (
        "Only the current certificate of an active peer counts, and a revocation within a second.",
        (
            "tests/net/test_net_mutual.py::test_p23_whom_the_authority_does_not_vouch_for_reaches_no_handler",
            "tests/remote/test_peering.py::test_p25_a_revocation_closes_what_is_connected_and_refuses_what_comes",
            "tests/remote/test_peers_listener.py::test_p25_a_revocation_ends_a_stream_within_a_second",
            "tests/remote/test_network.py::test_sslscan_finds_tls_1_3_and_nothing_older",
        ),
    ),
    "P26": (
        "A component does what its role, its policy and its lease allow, and nothing else.",
        (
            "tests/peers/test_peer_authorization.py::test_the_role_matrix_is_what_is_written_out",
            "tests/peers/test_peer_authorization.py::test_a_denial_beats_whatever_allows",
            "tests/peers/test_peer_authorization.py::test_a_lease_only_reduces",
            "tests/remote/test_peers_listener.py::test_p26_whoever_may_not_publish_is_forbidden",
        ),
    ),
    "P28-30": (
        "Keys that others could read are not used, and strangers cost little.",
        (
            "tests/peers/test_peer_records.py::test_p28_keys_that_others_could_read_or_swap_refuse_the_start",
            "tests/hosts/test_host_server.py::test_p29_plain_websockets_to_other_machines_are_refused_before_anything_is_looked_up",
            "tests/hosts/test_host_server.py::test_p30_handshakes_that_go_nowhere_are_few_and_leave_room_later",
        ),
    ),
    "T62": (
        "Secrets are shown nowhere.",
        (
            "tests/observe/test_canaries.py::test_a_secret_is_seen_nowhere",
            VAULT_CANARIES + "test_a_secret_of_an_account_is_shown_nowhere_and_kept_nowhere_in_plain_text",
            HERE + "shown.py::test_no_secret_stands_in_the_process_list",
            APPROVAL + "telegram.py::test_the_bot_token_is_in_no_log_and_no_answer",
        ),
    ),
    "T63": (
        "Nobody writes a log line of ours.",
        (
            HERE + "shown.py::test_hostile_text_stays_inside_its_own_log_line",
            "tests/observe/test_logs.py::test_a_forged_line_stays_inside_its_own",
            "tests/observe/test_logs.py::test_a_forged_line_inside_a_message_stays_inside_it",
        ),
    ),
    "T64": (
        "Nobody changes the record unseen.",
        (
            "tests/audit/test_audit_verify.py::test_a_changed_row_is_named_whatever_was_changed",
            "tests/audit/test_audit_verify.py::test_a_removed_row_is_named",
            "tests/audit/test_audit_verify.py::test_a_cut_tail_is_named",
            LIFE + "test_nothing_runs_while_the_record_cannot_be_written_and_it_heals_by_itself",
        ),
    ),
    "T65": (
        "A plugin is a class of the right kind, or the configuration is wrong.",
        (PLUGIN + "test_a_class_that_is_no_plugin_is_a_config_error_with_its_place",),
    ),
    "T66": (
        "A package without a version is warned about; no dependency is older than its floor.",
        (
            CONFIG + "servers.py::test_a_package_without_a_version_is_a_warning_or_by_wish_an_error",
            HERE + "versions.py::test_what_is_installed_is_not_older_than_its_floor",
        ),
    ),
    "R1": (
        "A crash at any point loses no approval, runs nothing twice and nothing undecided.",
        (
            "tests/chaos/test_crashes.py::test_nothing_ran_twice",
            "tests/chaos/test_crashes.py::test_nothing_ran_without_a_decision",
            "tests/chaos/test_crashes.py::test_no_approved_call_was_lost",
            "tests/store/test_store_kill.py::test_everything_acknowledged_survives_a_kill_and_the_chain_is_whole",
        ),
    ),
    "R15": (
        "A kill between an authorization server's new tokens and their commit recovers, or asks once.",
        (
            SIGNING
            + "test_r15_a_kill_between_the_servers_new_tokens_and_their_commit_asks_once_and_never_loops",
        ),
    ),
    "R3": (
        "A failed fsync stops serving.",
        (
            HERE + "faults.py::test_a_failed_fsync_stops_serving_until_the_next_start",
            STORE + "test_a_failed_fsync_breaks_the_store_until_the_next_start",
        ),
    ),
    "R4": (
        "On a full disk nothing runs unrecorded, and calls go on when there is room.",
        (
            HERE + "faults.py::test_nothing_runs_while_the_disk_is_full_and_calls_go_on_when_there_is_room",
            STORE + "test_a_full_disk_refuses_keeps_what_was_posted_and_heals",
        ),
    ),
    "R5": (
        "A locked store refuses after a while and heals.",
        (
            STORE + "test_a_locked_file_refuses_after_a_while_and_heals_when_the_lock_goes",
            LIFE + "test_nothing_runs_while_the_record_cannot_be_written_and_it_heals_by_itself",
        ),
    ),
    "R6": (
        "A failing source, or an impatient agent, costs the others nothing.",
        (
            HERE
            + "outages.py::"
            + "test_a_service_that_fails_again_and_again_is_left_alone_and_the_others_are_served",
            HERE + "outages.py::test_an_agent_in_a_hurry_closes_no_source_for_the_others",
            SOURCE
            + "source_stdio.py::test_a_crash_during_a_call_leaves_its_outcome_unknown_and_ends_the_watch",
        ),
    ),
    "R7": (
        "Lost sources are tried again, ever more slowly and never all at once.",
        (
            HERE + "outages.py::test_tries_grow_apart_to_a_minute_and_never_come_all_at_once",
            SOURCE + "real_servers.py::test_a_real_server_that_restarts_is_noticed_and_met_again",
        ),
    ),
    "R8": (
        "Crashing servers leave no process and no descriptor behind.",
        (SOURCE + "source_stdio.py::test_many_crashes_leave_no_process_and_no_descriptor",),
    ),
    "R9": (
        "Many servers are connected within seconds.",
        (HERE + "outages.py::test_many_servers_are_connected_within_seconds_and_listed_together",),
    ),
    "R12": (
        "Slow clients do not slow down a good one.",
        (NET + "hostile.py::test_slow_clients_do_not_slow_down_a_good_one",),
    ),
    "R14": (
        "Setting the clock gives no question and no remembered answer more time.",
        (
            "tests/approval/test_set_back.py::test_a_question_ends_in_time_however_the_clock_is_set",
            "tests/approval/test_set_back.py::test_a_grant_ends_in_time_however_the_clock_is_set",
        ),
    ),
    "R17": (
        "A gateway that is killed or hangs is taken over from: what was approved runs once, what ran is unknown.",
        (
            "tests/cluster/test_one_inbox.py::test_what_was_approved_runs_on_the_other_gateway_when_the_one_that_asked_is_gone",
            "tests/cluster/test_one_inbox.py::test_what_a_killed_gateway_was_running_is_unknown_after_its_lease_and_never_runs_again",
            "tests/cluster/test_cluster_faults.py::test_a_gateway_that_hangs_is_taken_over_from_and_changes_nothing_when_it_wakes",
        ),
    ),
    "R19": (
        "While PostgreSQL is away calls are refused; nothing is lost and nothing written twice.",
        (
            POSTGRES + "test_a_stopped_server_refuses_keeps_what_was_posted_and_heals",
            POSTGRES + "test_a_commit_whose_answer_was_lost_counts_and_is_not_repeated",
            POSTGRES + "test_posts_in_doubt_are_written_once_when_the_server_is_back",
            "tests/cluster/test_cluster_faults.py::test_a_database_that_is_killed_under_load_loses_no_approval_and_doubles_none",
        ),
    ),
    "R20": (
        "A bad reload keeps what was in force and says so.",
        (
            LIFE + "test_a_good_reload_takes_effect_and_a_bad_one_keeps_the_old_rules",
            "tests/policy_tools/test_policy_tools.py::test_a_bad_file_keeps_the_old_rules_and_says_so_everywhere",
        ),
    ),
    "R21": (
        "Stopping answers what runs; a dead gateway's place is taken over, a live one's never.",
        (
            LIFE + "test_a_running_call_is_answered_before_the_gateway_stops",
            LIFE + "test_a_dead_gateways_socket_and_lock_are_taken_over",
            LIFE + "test_a_second_gateway_on_the_same_store_exits_naming_the_first",
        ),
    ),
    "R22": (
        "A chat that was down or repeats itself gets every question, and each is answered once.",
        (
            APPROVAL + "telegram.py::test_a_chat_that_was_down_gets_each_question_once_when_it_heals",
            APPROVAL + "telegram.py::test_a_limit_is_waited_out",
            APPROVAL + "telegram.py::test_an_update_given_twice_counts_once",
            APPROVAL + "telegram.py::test_a_question_whose_reply_was_lost_is_asked_twice_and_answered_once",
        ),
    ),
    "R23": (
        "What a restored copy holds approved or open does not run again, and no answer that was taken back counts.",
        (
            RESTORED + "test_a_call_that_was_approved_in_the_copy_and_ran_since_does_not_run_again",
            RESTORED
            + "test_a_question_that_was_open_in_the_copy_is_withdrawn_because_it_may_have_been_answered",
            RESTORED + "test_a_grant_of_the_copy_does_not_count_because_it_may_have_been_revoked",
            RESTORED + "test_an_older_database_beside_the_note_of_its_end_is_known_without_a_mark",
        ),
    ),
    "R24": (
        "A migration that was cut off leaves nothing and is run again; a newer schema is refused.",
        (
            "tests/store/test_migrate.py::test_a_migration_that_fails_halfway_leaves_nothing_and_can_be_run_again",
            "tests/store/test_migrate.py::test_a_schema_of_a_newer_program_is_refused",
        ),
    ),
}


@cache
def functions_in(path):
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("ident", PROOFS)
def test_every_threat_and_promise_has_tests_that_exist(ident):
    words, proofs = PROOFS[ident]
    assert words.endswith(".")
    assert proofs
    for proof in proofs:
        path, _, name = proof.partition("::")
        assert name in functions_in(path), f"{proof} does not exist"


def test_the_security_page_names_every_threat_and_promise():
    page = (ROOT / "docs" / "security.md").read_text()
    for ident, (words, _) in PROOFS.items():
        assert f"| {ident} | {words}" in page
